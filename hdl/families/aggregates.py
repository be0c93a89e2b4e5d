# SPDX-License-Identifier: Apache-2.0
"""What a shell asks of a windowed aggregate by key."""

from amaranth import *

from hdl.aggregate.accelerator import ADDRESS_BITS, AGGREGATE_COUNTERS, aggregate_ports
from hdl.aggregate.words import (
    AggregateControl,
    AggregateKind,
    SourceControl,
    aggregate_word,
    value_result,
)

from .family import DIFFERENT, ILLEGAL, Family, Fault, InputNames, Trait, check_count

__all__ = ["AggregateFamily"]

FAULTS = (
    ILLEGAL,
    Fault("DISORDER", 1, "A star or mark told of a tuple whose pane had ended."),
    Fault("CAPACITY", 2, "A star or mark told of a key that is not below the capacity."),
    Fault("RANGE", 3, "A star or mark told of a reduction that needed more bits than it has."),
)
MERGE_FAULTS = (
    Fault("LATE", 7, "An input sent a tuple that is older than what had been reached."),
    Fault("EXCLUDED", 9, "An input stalled and was excluded."),
    DIFFERENT,
    Fault("ORDER", 12, "An input brought an order to exclude an input that does not exist."),
)
#: Operations that are answered with a mark.
ANSWERED = (AggregateControl.CLEAR, AggregateControl.FLUSH)
#: Operations that the merge of inputs takes.
ORDERS = (AggregateControl.WATERMARK, *SourceControl)


class AggregateFamily(Family):
    """What a shell asks of a windowed aggregate by key.

    Inputs that are merged bring tuples of one logical stream. WATERMARK and the operations of
    :class:`hdl.aggregate.words.SourceControl` are meant for the merge, which says watermarks to the
    accelerator by itself.
    """

    def __init__(self, parameters):
        super().__init__(
            parameters=parameters,
            input_word=aggregate_word(parameters),
            result_word=value_result(parameters),
            result_ports=("o",),
            ports=aggregate_ports(parameters),
            memory_ports={},
            memory_base=None,
            core_bits=(),
            counters=AGGREGATE_COUNTERS,
            counter_address_bits=ADDRESS_BITS,
            most_tuples=1,
            traits=(
                Trait("CORES", 0, 16, parameters.cores, "Cores, each with keys of its own."),
                Trait("TIMESTAMPS", 17, 1, 1, "Tuples have timestamps."),
                Trait("AGGREGATE", 22, 1, 1, "Windowed aggregates by key, and no join."),
            ),
            faults=FAULTS,
            time_bits=parameters.timestamp_bits + 1,  # a watermark can be beyond all timestamps
            takes_watermarks=True,
            orders={"operations": {order.name: order.value for order in SourceControl}},
        )

    def inputs(self, count, r_inputs=None):
        """Return the inputs: ``IN0``, ``IN1``; a single one has no name."""
        check_count(count)
        if r_inputs is not None:
            raise ValueError(
                f"Tuples of an aggregate have no sides, so none of its inputs is R's: leave out "
                f"the number of R's inputs, which is {r_inputs!r}"
            )
        names = tuple(f"IN{n}" for n in range(count)) if count > 1 else ()
        return InputNames(names, (0,) * len(names))

    def merge_faults(self, names):
        """Return the faults of merged inputs, which have no sides."""
        return MERGE_FAULTS

    def is_control(self, word):
        """Return whether an input word is a control word."""
        return word.kind == AggregateKind.CONTROL

    def is_answered(self, control):
        """Return whether the accelerator answers a control word with a mark."""
        return control.op.as_value().matches(*ANSWERED)

    def is_order(self, control):
        """Return whether the merge takes the word."""
        return control.op.as_value().matches(*ORDERS)

    def is_known(self, control):
        """Return one: every operation of an order exists."""
        return C(1, 1)

    def leaves(self, control):
        """Return whether an order lets the input leave."""
        return control.op.as_value() == SourceControl.LEAVE.value

    def excludes(self, control):
        """Return whether an order excludes another input."""
        return control.op.as_value() == SourceControl.EXCLUDE.value

    def told_faults(self, result):
        """Return the flags in the order of the faults."""
        told = result.body.faults
        return Cat(told.illegal, told.disorder, told.capacity, told.range)

    def forgets_time(self, control):
        """Return whether times begin at zero behind a control word."""
        return control.op == AggregateControl.CLEAR

    def say_watermark(self, word, time):
        """Return assignments that make a word WATERMARK of a time."""
        control = word.body.control
        return [
            word.kind.eq(AggregateKind.CONTROL),
            control.op.eq(AggregateControl.WATERMARK),
            control.value.eq(time),
        ]
