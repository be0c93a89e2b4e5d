# SPDX-License-Identifier: Apache-2.0
"""Registers behind values that go on together."""

from amaranth import *

__all__ = ["delayed"]


def delayed(m, values, name, *, flags):
    """Put a register behind each of some values that belong together.

    Parameters
    ----------
    m : Module
    values : dict of str to Value
    name : str
        Of the registers, together with the name of the value.
    flags : sequence of str
        Those that say whether the others mean anything: only they are reset.

    Returns
    -------
    dict of str to Signal
        The values of a cycle ago.
    """
    later = {}
    for field, value in values.items():
        later[field] = Signal(
            Value.cast(value).shape(), name=f"{name}_{field}", reset_less=field not in flags
        )
        m.d.sync += later[field].eq(value)
    return later
