# SPDX-License-Identifier: Apache-2.0
"""Where rounds end in the rows of a pass."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.words.rounds import longest_round, rounds_shape

from .layouts import group_layout

__all__ = ["RoundEnds"]


class RoundEnds(wiring.Component):
    """Tell for each row of a pass in which lanes a round ends (:mod:`hdl.words.rounds`).

    A round ends with its last key if that key is in the span of the pass. Rounds are sent for one
    probe at a time, so the span is that of the only probe. In a pass without rounds, or without
    probes, no round ends.

    Latency: ``latency`` cycles. Throughput: 1 row per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with rounds.
    latency : int
        Cycles from a row to its ``ends``, at least one.

    Members
    -------
    load : In(1)
        The pass of ``group`` begins with the row of the next cycle.
    group : In(group_layout(parameters))
    step : In(1)
        ``row`` is read; from the next cycle on it is no longer the first one.
    row : In
        Row of the ring, without wrap bit.
    last : In(1)
        It is the last row of the pass.
    ends : Out(lanes)
        Lanes with the last key of a round, of the row ``latency`` cycles ago.
    rounds : Out(rounds_shape(parameters))
        Size of the rounds of that row's pass, as a code.
    """

    def __init__(self, parameters, *, latency):
        if latency < 1:
            raise ValueError(f"The ends of rounds take at least one cycle, not {latency!r}")
        self.parameters = parameters
        self.latency = latency
        super().__init__(
            {
                "load": In(1),
                "group": In(group_layout(parameters)),
                "step": In(1),
                "row": In(range(parameters.ring_rows)),
                "last": In(1),
                "ends": Out(parameters.lanes),
                "rounds": Out(rounds_shape(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        group = self.group
        rounds = Signal.like(self.rounds, name="rounds_now", reset_less=True)
        tail, head = (
            Signal.like(group[name], name=name, reset_less=True)
            for name in ("tail_lane", "head_lane")
        )
        first = Signal(reset_less=True)
        with m.If(self.step):
            m.d.sync += first.eq(0)
        with m.If(self.load):
            vacant = (group.ending.count == 0) | (group.stop == group.first)
            m.d.sync += [
                rounds.eq(Mux(vacant, 0, group.ending.rounds)),
                tail.eq(group.tail_lane),
                head.eq(group.head_lane),
                first.eq(1),
            ]
        # The last row holds keys in all lanes if the span ends before the first lane of a row.
        ends = Cat(
            self.is_end(rounds, lane)
            & (~first | (tail <= lane))
            & (~self.last | (head == 0) | (head > lane))
            for lane in range(self.parameters.lanes)
        )
        for cycle in range(self.latency):
            later = Signal(len(ends), name=f"ends_{cycle}", reset_less=True)
            size = Signal.like(rounds, name=f"rounds_{cycle}", reset_less=True)
            m.d.sync += [later.eq(ends), size.eq(rounds)]
            ends, rounds = later, size
        m.d.comb += [self.ends.eq(ends), self.rounds.eq(rounds)]
        return m

    def is_end(self, rounds, lane):
        """Return whether the key in a lane of the row is the last one of a round of this size."""
        in_row = ceil_log2(self.parameters.lanes)  # rounds of 2**in_row keys are as long as a row
        held = []
        for n in range(longest_round(self.parameters) + 1):
            own = (1 << min(n, in_row)) - 1
            if lane & own == own:
                held.append((rounds == n + 1) & self.row[: max(0, n - in_row)].all())
        return Cat(held).any()
