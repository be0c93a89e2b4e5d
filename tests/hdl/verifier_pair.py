# SPDX-License-Identifier: Apache-2.0
"""A verifier and its table of passes, as the digest engine connects them."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.scan.layouts import lane_matches_layout
from hdl.scan.ring import PassTable
from hdl.scan.verifier import Verifier

__all__ = ["VerifierPair"]


class VerifierPair(wiring.Component):
    """Both, with the verifier's streams; a test drives their other inputs itself."""

    def __init__(self, parameters, *, columns=None):
        self.verifier = Verifier(parameters, columns=columns)
        self.passes = PassTable(parameters, delay=self.verifier.probe_delay)
        lanes = (lane_matches_layout(parameters, bits) for bits in (1, parameters.engine.probes))
        i, o = map(stream.Signature, lanes)
        super().__init__({"i": In(i), "o": Out(o)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.verifier = self.verifier
        m.submodules.passes = self.passes
        connect(m, self.passes.reading, self.verifier.passes)
        connect(m, flipped(self.i), self.verifier.i)
        connect(m, self.verifier.o, flipped(self.o))
        return m
