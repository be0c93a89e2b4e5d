# SPDX-License-Identifier: Apache-2.0
"""Delay several related values by one cycle."""

from amaranth import *

__all__ = ["delayed"]


def delayed(m, values, name, *, flags):
    """Put one register behind each of several related values.

    Parameters
    ----------
    m : Module
        Module that receives the registers.
    values : dict of str to Value
        Values to delay, by name.
    name : str
        Prefix of the register names. The name of the value follows it.
    flags : sequence of str
        Names of the values that tell whether the other values are meaningful. Only these are reset.

    Returns
    -------
    dict of str to Signal
        The values of the previous cycle, by the same names.
    """
    later = {}
    for field, value in values.items():
        later[field] = Signal(
            Value.cast(value).shape(), name=f"{name}_{field}", reset_less=field not in flags
        )
        m.d.sync += later[field].eq(value)
    return later
