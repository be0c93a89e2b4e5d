# SPDX-License-Identifier: Apache-2.0
"""The ports of an aggregate accelerator."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.counters import COUNTER_BITS

from .aggregate_counters import ADDRESS_BITS
from .words import aggregate_word, value_result

__all__ = ["aggregate_ports"]


def aggregate_ports(parameters):
    """Return the members of an aggregate accelerator.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    """
    return {
        "i": In(stream.Signature(aggregate_word(parameters))),
        "o": Out(stream.Signature(value_result(parameters))),
        "counter_addr": In(ADDRESS_BITS),
        "counter_data": Out(COUNTER_BITS),
    }
