# SPDX-License-Identifier: Apache-2.0
"""The ports that every accelerator has."""

from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from .counters import COUNTER_BITS, address_bits
from .memory.axi4 import memory_members
from .result_ports import result_ports
from .words.inputs import input_word
from .words.results import result_word

__all__ = ["accelerator_ports"]


def accelerator_ports(parameters):
    """Return the members of an accelerator, of whatever architecture.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """
    results = Out(stream.Signature(result_word(parameters)))
    return {
        "i": In(stream.Signature(input_word(parameters))),
        **dict.fromkeys(result_ports(parameters), results),
        "counter_addr": In(address_bits(parameters)),
        "counter_data": Out(COUNTER_BITS),
        **memory_members(parameters, 2 * parameters.cores),
        **dict.fromkeys(
            ["clock_request", "vacant"] * parameters.clock_requests, Out(parameters.cores)
        ),
    }
