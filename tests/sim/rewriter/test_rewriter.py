# SPDX-License-Identifier: Apache-2.0
"""The text as a whole; tests/sim/verilated/test_plain.py compares what is compiled from it."""

import re

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
import pytest

from hdl.accelerator import Accelerator
from hdl.parameters import JoinParameters, KeyField
from hdl.verilog.conversion import to_netlist
from sim.rewriter import one_process_each
from sim.verilated.model import simulated_text

LARGE = JoinParameters.of(
    cores=1, sub_window=1 << 12, engine="index", probes=32,
    keys=(KeyField(name="x", bits=8), KeyField(name="y", bits=40)),
)  # fmt: skip


class Swap(wiring.Component):
    """Two registers that change places, and a third that nobody reads."""

    i: In(4)
    o: Out(4)

    def elaborate(self, platform):
        m = Module()
        one, other, unread = (Signal(4, name=name, init=3) for name in ("one", "other", "unread"))
        with m.If(self.i[0]):
            m.d.sync += [one.eq(other), other.eq(one)]
        with m.Else():
            m.d.sync += one.eq(self.i)
        m.d.sync += [self.o.eq(one ^ self.i), unread.eq(unread + 1)]
        return m


@pytest.mark.long
def test_every_module_has_one_process_and_large_memories_are_fetched_ahead():
    text = simulated_text(to_netlist(Accelerator(LARGE))[1])
    assert text.count("\nmodule ") + 1 == text.count("always @") == 2
    assert text.count("VL_PREFETCH_RD") == 1  # of the keys; all else is in a nearer cache


def test_the_same_netlist_gives_the_same_text():
    netlist = to_netlist(Swap(), name="swap")[1]
    texts = {one_process_each(netlist, top="swap", stay=lambda name: False) for _ in range(3)}
    assert len(texts) == 1


def test_registers_that_change_places_are_copied_and_unread_ones_dropped():
    netlist = to_netlist(Swap(), name="swap")[1]
    text = one_process_each(netlist, top="swap", stay=lambda name: False)
    assert len(re.findall(r"\b(one|other)_(?:old|before) = \1;", text)) == 1
    assert "unread" not in re.sub(r"^  reg .*", "", text, flags=re.MULTILINE)
