# SPDX-License-Identifier: Apache-2.0
"""Words of an accelerator of aggregates, and the fields of its windows."""

from amaranth import *
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.registers import delayed

from .aggregate_parameters import lifted_value, partial_shape, window_shape

__all__ = [
    "AggregateControl",
    "AggregateKind",
    "CoreKind",
    "SourceControl",
    "ValueKind",
    "WindowFields",
    "aggregate_word",
    "core_tuple",
    "core_word",
    "entry_layout",
    "faults_layout",
    "job_layout",
    "lifted_layout",
    "partial_layout",
    "target_layout",
    "tuple_layout",
    "value_result",
    "window_layout",
]


class AggregateKind(enum.Enum, shape=1):
    """Kind of an input word."""

    TUPLE = 0
    CONTROL = 1


class AggregateControl(enum.Enum, shape=3):
    """Operation of a control word. Its operand is ``value``."""

    #: Forget all tuples, times and faults, and begin with the window that PANE, SIZE and ADVANCE
    #: have set. The accelerator answers with a mark.
    CLEAR = 0
    #: The accelerator answers with a mark, after all results that the words before this one cause.
    FLUSH = 1
    #: No later tuple is below the time ``value``. A value below an earlier time has no effect.
    WATERMARK = 2
    #: A pane is ``value`` units of time long, from the next CLEAR on.
    PANE = 3
    #: A window has ``value`` panes, from the next CLEAR on.
    SIZE = 4
    #: Windows begin every ``value`` panes, from the next CLEAR on.
    ADVANCE = 5


class SourceControl(enum.Enum, shape=3):
    """Operation of a control word that the merge of a shell's inputs takes, and no accelerator."""

    #: This input leaves, and comes back with its next word.
    LEAVE = 6
    #: The input with the number ``value`` is excluded if it stalls.
    EXCLUDE = 7


class CoreKind(enum.Enum, shape=2):
    """Kind of a word in the distribution tree."""

    #: A tuple of one key.
    TUPLE = 0
    #: A pane ends.
    CLOSE = 1
    #: Forget everything.
    CLEAR = 2
    #: Answer with a mark.
    MARK = 3


class ValueKind(enum.Enum, shape=2):
    """Kind of a result of an aggregate."""

    #: The reductions of one key in one window.
    VALUE = 0
    #: All values of a window have been sent.
    STAR = 1
    #: Answer to a control word.
    MARK = 2


def tuple_layout(parameters):
    """Return the layout of a tuple: the operator's fields and the ``timestamp``."""
    fields = {
        field.name: signed(field.bits) if field.signed else unsigned(field.bits)
        for field in parameters.operator.fields
    }
    return data.StructLayout({**fields, "timestamp": unsigned(parameters.timestamp_bits)})


def lifted_layout(parameters):
    """Return the layout of what a tuple contributes to each reduction."""
    fields = Signal(tuple_layout(parameters))
    names = {name: fields[name] for name, _ in tuple_layout(parameters)}
    return data.StructLayout(
        {rule.name: lifted_value(rule, names).shape() for rule in parameters.operator.reductions}
    )


def aggregate_word(parameters):
    """Return the layout of an input word: ``kind``, then a ``tuple`` or a ``control`` operation.

    The value of a control word has one bit more than a timestamp, so that a watermark can lie
    beyond all timestamps.
    """
    control = data.StructLayout(
        {"op": AggregateControl, "value": unsigned(parameters.timestamp_bits + 1)}
    )
    body = data.UnionLayout({"tuple": tuple_layout(parameters), "control": control})
    return data.StructLayout({"kind": AggregateKind, "body": body})


def partial_layout(parameters):
    """Return the layout of the reductions of one key in one pane."""
    return data.StructLayout(
        {rule.name: partial_shape(parameters, rule) for rule in parameters.operator.reductions}
    )


def entry_layout(parameters):
    """Return the layout of a key's entry of the open pane: whether it has a tuple, and which."""
    return data.StructLayout({"touched": 1, "partial": partial_layout(parameters)})


def window_layout(parameters):
    """Return the layout of the reductions of one key in one window."""
    return data.StructLayout(
        {rule.name: window_shape(parameters, rule) for rule in parameters.operator.reductions}
    )


def faults_layout(parameters):
    """Return the layout of what a star or mark tells of faults since the last CLEAR.

    ``capacity``: a tuple had a key that is not below the capacity; it was dropped.
    ``range``: a reduction of a key needed more bits than it has, in a pane or in a window; its
      value is wrong.
    ``key``: the first key with such a fault, of ``capacity`` if there are both.
    ``disorder``: a tuple was below an earlier watermark, in a pane that had ended; it was dropped.
    ``illegal``: a control word had an operation that does not exist; it was dropped.
    """
    return data.StructLayout(
        {
            "capacity": 1,
            "range": 1,
            "key": unsigned(parameters.key_bits),
            "disorder": 1,
            "illegal": 1,
        }
    )


def job_layout(parameters):
    """Return the layout of what a core has to do besides tuples.

    ``answers``: a CLOSE ends a window, whose values and star are sent; a CLEAR sends a mark.
    ``boundary``: right boundary of that window, the time of its results.
    ``slot``: number of the pane, modulo the panes of a window.
    ``filled``: panes since CLEAR before this one, up to the panes of a window. So slots from
    ``filled`` on hold nothing.
    ``size``: panes of a window.
    ``faults``: what the ingress knows of faults.
    """
    return data.StructLayout(
        {
            "answers": 1,
            "boundary": unsigned(parameters.timestamp_bits + 1),
            "slot": range(max(2, parameters.panes)),
            "filled": range(parameters.panes + 1),
            "size": range(parameters.panes + 1),
            "faults": faults_layout(parameters),
        }
    )


def target_layout(parameters):
    """Return the layout of where a key is: in row ``row`` of core ``core``, if it is ``valid``."""
    return data.StructLayout(
        {
            "valid": 1,
            "core": range(max(2, parameters.cores)),
            "row": range(parameters.rows),
        }
    )


def core_tuple(parameters):
    """Return the layout of a tuple in the distribution tree.

    ``targets``: the places of its keys, which differ from each other.
    ``lifted``: what the tuple contributes to each reduction.
    """
    targets = data.ArrayLayout(target_layout(parameters), parameters.tuple_keys)
    return data.StructLayout({"targets": targets, "lifted": lifted_layout(parameters)})


def core_word(parameters):
    """Return the layout of a word in the distribution tree: a ``tuple`` or a ``job``."""
    bodies = {"tuple": core_tuple(parameters), "job": job_layout(parameters)}
    return data.StructLayout({"kind": CoreKind, "body": data.UnionLayout(bodies)})


def value_result(parameters):
    """Return the layout of a result, from a core to the user.

    ``boundary`` is the right boundary of the window, in a value as in its star. ``key`` and
    ``window`` are those of a value, ``faults`` those of a star or mark.
    """
    value = data.StructLayout(
        {"key": unsigned(parameters.key_bits), "window": window_layout(parameters)}
    )
    body = data.UnionLayout({"value": value, "faults": faults_layout(parameters)})
    boundary = unsigned(parameters.timestamp_bits + 1)
    return data.StructLayout({"kind": ValueKind, "boundary": boundary, "body": body})


class WindowFields(wiring.Component):
    """Hold what control words say of windows, which takes effect when everything begins anew.

    A size or advance out of range is clamped to ``1 .. parameters.panes``, a pane of 0 to 1. After
    reset, the fields are those of the operator, from the first ``begin`` on.

    Latency: 1 cycle from ``begin`` to the fields, 2 cycles from ``set`` to the first ``begin`` in
    which it counts. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    set : In(1)
        Take ``value`` for the field that ``op`` sets, if any.
    op : In(AggregateControl)
    value : In(parameters.timestamp_bits + 1)
    begin : In(1)
        What was set takes effect.
    pane : Out(parameters.timestamp_bits + 1)
        Units of time.
    size, advance : Out(range(parameters.panes + 1))
        Panes of a window; panes from the beginning of a window to that of the next one.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        panes = range(parameters.panes + 1)
        super().__init__(
            {
                "set": In(1),
                "op": In(AggregateControl),
                "value": In(parameters.timestamp_bits + 1),
                "begin": In(1),
                "pane": Out(parameters.timestamp_bits + 1),
                "size": Out(panes),
                "advance": Out(panes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        operator, most = self.parameters.operator, self.parameters.panes
        arriving = {"set": self.set, "op": self.op, "value": self.value}
        arriving = delayed(m, arriving, "arriving", flags=("set",))
        value = arriving["value"]
        at_least_one = value | (value == 0)
        some_panes = Mux(value > most, most, at_least_one)
        fields = {
            AggregateControl.PANE: (self.pane, operator.pane, at_least_one),
            AggregateControl.SIZE: (self.size, operator.panes, some_panes),
            AggregateControl.ADVANCE: (
                self.advance,
                operator.advance // operator.pane,
                some_panes,
            ),
        }
        for op, (field, initial, limited) in fields.items():
            coming = Signal.like(field, init=initial, name=f"next_{op.name.lower()}")
            with m.If(arriving["set"] & (arriving["op"] == op.value)):
                m.d.sync += coming.eq(limited)
            with m.If(self.begin):
                m.d.sync += field.eq(coming)
        return m
