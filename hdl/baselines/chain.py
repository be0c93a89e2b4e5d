# SPDX-License-Identifier: Apache-2.0
"""A row of cores, each connected with its neighbours."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.verilog.literal import literal
from hdl.words.spans import activity_layout

from .expedited_core import ExpeditedCore
from .handshake_core import HandshakeCore
from .layouts import chain_result, lane_word

__all__ = ["Chain"]


class Chain(wiring.Component):
    """Let R flow from the last core to the first one, and S from the first one to the last.

    What leaves at either end is dropped.

    Latency, throughput: those of its cores.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    lanes : In(stream.Signature(lane_word(parameters))).array(2)
        Where tuples of R enter, and where those of S do.
    taken : Out(2)
        A word of either lane was taken by the core where it enters, in the cycle before.
    results : Out(stream.Signature(chain_result(parameters))).array(2 * cores)
        Of each core, of R's tuples and of S's.
    activity : Out(activity_layout(parameters)).array(2 * cores)
    resets : In(1).array(cores)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        kind = HandshakeCore if parameters.architecture == "handshake" else ExpeditedCore
        self.cores = [kind(parameters) for _ in range(parameters.cores)]
        self.latency = self.cores[0].latency
        count = 2 * parameters.cores
        super().__init__(
            {
                "lanes": In(stream.Signature(lane_word(parameters))).array(2),
                "taken": Out(2),
                "results": Out(stream.Signature(chain_result(parameters))).array(count),
                "activity": Out(activity_layout(parameters)).array(count),
                "resets": In(1).array(parameters.cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cores, most = self.cores, self.parameters.cores - 1
        for n, core in enumerate(cores):
            m.submodules[f"core_{n}"] = core
            m.d.comb += [
                core.position.eq(literal(n, core.position.shape())),
                core.last.eq(literal(int(n == most), 1)),
                core.reset.eq(self.resets[n]),
            ]
            for side in range(2):
                connect(m, core.results[side], flipped(self.results[2 * n + side]))
                m.d.comb += self.activity[2 * n + side].eq(core.activity[side])
        for left, right in pairwise(cores):
            connect(m, right.r_o, left.r_i)
            connect(m, left.s_o, right.s_i)
        connect(m, flipped(self.lanes[0]), cores[-1].r_i)
        connect(m, flipped(self.lanes[1]), cores[0].s_i)
        m.d.comb += [
            cores[0].r_o.ready.eq(literal(1, 1)),
            cores[-1].s_o.ready.eq(literal(1, 1)),
            self.taken.eq(Cat(cores[-1].taken[0], cores[0].taken[1])),
        ]
        if self.parameters.architecture == "handshake":
            self.elaborate_held(m)
        return m

    def elaborate_held(self, m):
        """Tell every core what its neighbours keep; at the ends, no tuple is sent on."""
        cores = self.cores
        full = literal((1 << len(cores[0].held_i[0])) - 1, cores[0].held_i[0].shape())
        for n, core in enumerate(cores):
            m.d.comb += [
                core.held_i[0].eq(cores[n - 1].held_o[0] if n else full),
                core.held_i[1].eq(cores[n + 1].held_o[1] if n + 1 < len(cores) else full),
            ]
