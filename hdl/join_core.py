# SPDX-License-Identifier: Apache-2.0
"""A join core: one left and one right region (Figure 4)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .distribution import DistributionNode
from .layouts import activity_layout, node_result, region_word
from .region import Region

__all__ = ["JoinCore"]


class JoinCore(wiring.Component):
    """Hand every word to both regions; they go on independently from there.

    Latency: 1 cycle more than a :class:`Region`. Throughput: that of the slower region.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    position : In
        Number of the core.
    words : In(stream.Signature(region_word(parameters)))
    results : Out(stream.Signature(node_result(parameters, 0))).array(2)
        Of the left region (probes of R) and of the right region (probes of S).
    activity : Out(activity_layout(parameters)).array(2)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.regions = [Region(parameters, probe_side=side) for side in range(2)]
        self.latency = 1 + self.regions[0].latency
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(region_word(parameters))),
                "results": Out(stream.Signature(node_result(parameters, 0))).array(2),
                "activity": Out(activity_layout(parameters)).array(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.split = split = DistributionNode(region_word(self.parameters), fan_out=2)
        connect(m, flipped(self.words), split.i)
        for side, (name, region) in enumerate(zip(("left", "right"), self.regions, strict=True)):
            m.submodules[name] = region
            connect(m, split.o[side], region.words)
            connect(m, region.results, flipped(self.results[side]))
            m.d.comb += [
                region.position.eq(self.position),
                self.activity[side].eq(region.activity),
            ]
        return m
