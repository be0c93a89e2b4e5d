# SPDX-License-Identifier: Apache-2.0
"""The windows of an aggregate: length of a pane, panes of a window and of its advance."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.delay import delayed

from .words import AggregateControl

__all__ = ["WindowFields"]


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
