# SPDX-License-Identifier: Apache-2.0
"""What a shell asks of a join."""

from functools import reduce
from operator import or_

from amaranth import *

from hdl.accelerator import accelerator_ports
from hdl.arrangement import SPLITJOIN
from hdl.counters import address_bits, counters_of
from hdl.memory.axi4 import BaseAddress, memory_members, shared_port
from hdl.words.inputs import SOURCE_OPERATION, InputKind, SourceOrder, input_word, operation_indices
from hdl.words.operands import ANSWERED
from hdl.words.results import ResultKind, result_ports, result_word

from .family import (
    DIFFERENT,
    ILLEGAL,
    Family,
    Fault,
    InputNames,
    Trait,
    check_inputs,
    input_names,
    sides_of,
)

__all__ = ["JoinFamily"]

#: Outputs of an accelerator with clock requests.
CORE_BITS = ("clock_request", "vacant")
VALUES = Trait("VALUES", 23, 1, 1, "Results are values that matches are reduced to, not pairs.")
FAULTS = (
    ILLEGAL,
    Fault("DISORDER", 1, "A star or mark told that time went backwards."),
    Fault("OVERFLOW_R", 2, "A star or mark told that R's window had overflowed."),
    Fault("OVERFLOW_S", 3, "A star or mark told that S's window had overflowed."),
    Fault("FAILED", 4, "A star or mark told of a core that had failed."),
    Fault("PARITY", 5, "A star or mark told of a core that had read a flipped bit."),
)


def traits_of(parameters):
    """Return what the register ENGINE says of a join."""
    flags = (
        ("INDEX", parameters.engine.number, "One for an index, zero for a scan."),
        ("TIMESTAMPS", parameters.timestamp_bits > 0, "Tuples have timestamps."),
        ("GATES", parameters.has_gates, "Cores have gates: a core that fails is masked."),
        ("PARITY", parameters.engine.parity, "Stored tuples have parity."),
        ("OWN", parameters.architecture != SPLITJOIN, "Cores in an arrangement of one's own."),
        (
            "CLOCK_REQUESTS",
            parameters.engine.clock_requests,
            "Registers tell which cores need their clock.",
        ),
    )
    return (
        Trait("CORES", 0, 16, parameters.cores, "Join cores."),
        *(Trait(name, 16 + n, 1, int(value), text) for n, (name, value, text) in enumerate(flags)),
        *([VALUES] if parameters.is_aggregated else []),
    )


class JoinFamily(Family):
    """What a shell asks of a join, which sends its matches or what they are reduced to.

    Inputs that are merged bring tuples of one side each. What is meant for the merge is a control
    word of :data:`hdl.words.inputs.SOURCE_OPERATION`.
    """

    def __init__(self, parameters):
        super().__init__(
            parameters=parameters,
            input_word=input_word(parameters),
            result_word=result_word(parameters),
            result_ports=result_ports(parameters),
            ports=accelerator_ports(parameters),
            memory_ports=memory_members(parameters, 2 * parameters.cores, port=shared_port),
            memory_base=BaseAddress.of(parameters),
            core_bits=CORE_BITS * parameters.engine.clock_requests,
            counters=counters_of(parameters),
            counter_address_bits=address_bits(parameters),
            most_tuples=parameters.engine.tuples_per_word,
            traits=traits_of(parameters),
            faults=FAULTS,
            time_bits=parameters.timestamp_bits,
            takes_watermarks=False,
            orders={
                "operations": {"SOURCE": SOURCE_OPERATION},
                "source_orders": {order.name: order.value for order in SourceOrder},
            },
        )

    def inputs(self, count, r_inputs=None):
        """Return the inputs: R's first, then S's."""
        check_inputs(self.parameters, count, r_inputs)
        names = input_names(count, r_inputs)
        return InputNames(names, sides_of(names))

    def merge_faults(self, names):
        """Return the faults of merged inputs."""
        r, s = (whose(side, names) for side in "RS")
        return (
            Fault("LATE_R", 7, f"{r} sent a tuple that is older than what had been reached."),
            Fault("LATE_S", 8, f"{s} sent a tuple that is older than what had been reached."),
            Fault("EXCLUDED_R", 9, f"{r} stalled and was excluded."),
            Fault("EXCLUDED_S", 10, f"{s} stalled and was excluded."),
            DIFFERENT,
            Fault(
                "SIDE",
                12,
                "An input brought a tuple of the other side, or an order that does not exist.",
            ),
        )

    def is_control(self, word):
        """Return whether an input word is a control word."""
        return word.kind == InputKind.CONTROL

    def is_answered(self, control):
        """Return whether a mark answers; an operation that is not executed is dropped."""
        executed = operation_indices(self.parameters)
        return reduce(or_, (control.op == op for op in ANSWERED if op in executed))

    def is_order(self, control):
        """Return whether the operation is the one that no accelerator has."""
        return control.op.as_value() == SOURCE_OPERATION

    def is_known(self, control):
        """Return whether the index names an order."""
        return control.index <= SourceOrder.EXCLUDE.value

    def leaves(self, control):
        """Return whether an order lets the input leave."""
        return control.index == SourceOrder.LEAVE.value

    def excludes(self, control):
        """Return whether an order excludes another input."""
        return control.index == SourceOrder.EXCLUDE.value

    def silent(self, result):
        """Return whether a result is the star of a round."""
        if not self.parameters.engine.rounds:
            return None
        return (result.kind == ResultKind.STAR) & result.body.punctuation.inner

    def told_faults(self, result):
        """Return the flags in the order of the faults; zero where there are no such flags."""
        told, parameters = result.body.punctuation, self.parameters
        return Cat(
            told.illegal,
            told.disorder,
            told.overflow,
            told.failed if parameters.has_gates else C(0, 1),
            told.failed_parity.any() if parameters.engine.parity else C(0, 1),
        )


def whose(side, names):
    """Return what to call the inputs of a side in a sentence."""
    return f"{side}'s input" if side in names else f"An input of {side}"
