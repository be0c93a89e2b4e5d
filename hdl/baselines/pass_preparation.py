# SPDX-License-Identifier: Apache-2.0
"""What a tuple compares keys with, prepared in the core of the handshake join that it passes."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ingress.preparation import ProbePreparation, unsigned_key
from hdl.streams.delay import delayed
from hdl.words.inputs import InputKind, bounds_layout, control_layout
from hdl.words.prepared import criterion_layout, stored_layout

from .layouts import pass_layout

__all__ = ["PassPreparation"]


class PassPreparation(wiring.Component):
    """Prepare the criterion of a tuple, and hand it to a segment together with its pass.

    A band takes the stages that it takes SplitJoin once, at the root; here every core has them for
    each side, as a ring holds keys only. For other comparators the key is the criterion.

    Latency: :attr:`latency` cycles. Throughput: 1 pass per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    side : int
        Of the tuples: 0 for R, 1 for S.

    Members
    -------
    push : In(1)
    pass_, key : In
    bound : In(1)
        Set those of ``bounds`` that are one to ``value``.
    bounds, value : In
    pushed : Out(1)
    prepared, criterion : Out
    """

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self._is_band = parameters.comparator == "band"
        self._preparation = ProbePreparation(parameters) if self._is_band else None
        self.latency = self._preparation.latency if self._is_band else 1
        super().__init__(
            {
                "push": In(1),
                "pass_": In(pass_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "bound": In(1),
                "bounds": In(bounds_layout(parameters)),
                "value": In(control_layout(parameters)["value"].shape),
                "pushed": Out(1),
                "prepared": Out(pass_layout(parameters)),
                "criterion": Out(criterion_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        values = {"push": self.push, "pass": Value.cast(self.pass_)}
        if not self._is_band:
            values["key"] = Value.cast(self.key)
        for stage in range(self.latency):
            values = delayed(m, values, f"stage_{stage}", flags=("push",))
        m.d.comb += [
            self.pushed.eq(values["push"]),
            Value.cast(self.prepared).eq(values["pass"]),
        ]
        if self._is_band:
            self.elaborate_preparation(m)
        else:
            m.d.comb += Value.cast(self.criterion).eq(values["key"])
        return m

    def elaborate_preparation(self, m):
        """Send the key, or a bound, through the stages of a probe."""
        m.submodules.preparation = preparation = self._preparation
        scheduled = preparation.i.payload
        word = scheduled.word
        m.d.comb += [
            preparation.i.valid.eq(self.push | self.bound),
            self.criterion.eq(preparation.o.payload.body.tuple.criterion),
        ]
        with m.If(self.bound):
            m.d.comb += [
                word.kind.eq(InputKind.CONTROL),
                word.body.control.value.eq(self.value),
                scheduled.bounds.eq(self.bounds),
            ]
        with m.Else():
            m.d.comb += word.kind.eq(InputKind.S if self.side else InputKind.R)
            for field in self.parameters.keys:
                # A key is stored without its sign; taken away twice, it is there again.
                m.d.comb += Value.cast(word.body.tuple.key[field.name]).eq(
                    unsigned_key(field, self.key[field.name])
                )
