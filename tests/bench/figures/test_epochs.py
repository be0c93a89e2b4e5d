# SPDX-License-Identifier: Apache-2.0
"""The runs behind the figures of an epoch's way through the tree: small ones, and a wrong one."""

from amaranth import Module, Signal
import pytest

from bench.figures.epochs import STEPS, Broadcast, EpochRun
from hdl.ingress.storage_turns import ListWalk


@pytest.mark.parametrize(
    ("cores", "steps"),
    [(1, [(1, 1)]), (2, [(1, 2), (2, 1)]), (3, [(3, 2)]), (4, [(4, 1)]), (5, [(2, 5), (5, 3)])],
)
def test_an_epoch_reaches_all_cores_in_the_latency_of_ingress_and_tree(cores, steps):
    run = EpochRun(cores, steps)
    run.run()
    assert run.cycles == dict.fromkeys(steps, run.dut.latency + 1)  # the tuple behind SEGMENT
    assert run.dut.latency + 1 <= 2 * run.depth + 8
    assert run.preparation == {step: step[1] for step in steps}
    assert run.stalls == 0


def test_what_cores_were_told_to_store_is_counted():
    run = EpochRun(3, [(2, 3), (3, 1)], tuples=11)
    run.run()
    assert sorted(run.stored[2, 3].values()) == [5, 6]
    assert run.imbalance((2, 3)) == pytest.approx(100 * 0.5 / 5.5)
    assert sorted(run.stored[3, 1].values()) == [3, 4, 4]


def test_the_steps_are_those_of_table_iv():
    """Threads before a step, and those after provisioning and after decommissioning."""
    up = dict(step for step in STEPS if step[1] > step[0])
    down = dict(step for step in STEPS if step[1] < step[0])
    assert up == {1: 2, 5: 9, 9: 16, 18: 31, 30: 52, 40: 69}
    assert down == {5: 2, 9: 3, 18: 7, 30: 12, 40: 17, 60: 25, 70: 30}
    assert len(STEPS) == len(up) + len(down)


def test_turns_of_another_epoch_are_noticed(monkeypatch):
    follow = ListWalk.following
    monkeypatch.setattr(ListWalk, "following", lambda self, place, last: follow(self, place, ~last))
    with pytest.raises(AssertionError, match="has another owner"):
        EpochRun(3, [(3, 2)]).run()


def test_an_input_that_waits_is_noticed(monkeypatch):
    class Pausing(Broadcast):
        def elaborate(self, platform):
            m = Module()
            m.submodules.inner = inner = Broadcast(self.parameters)
            pause = Signal(3)
            m.d.sync += pause.eq(pause + 1)
            m.d.comb += [
                inner.i.payload.eq(self.i.payload),
                inner.i.valid.eq(self.i.valid & pause.any()),
                self.i.ready.eq(inner.i.ready & pause.any()),
            ]
            for own, other in zip(self.o, inner.o, strict=True):
                m.d.comb += [
                    own.payload.eq(other.payload),
                    own.valid.eq(other.valid),
                    other.ready.eq(own.ready),
                ]
            return m

    monkeypatch.setattr("bench.figures.epochs.Broadcast", Pausing)
    run = EpochRun(2, [(1, 2)])
    run.run()
    assert run.stalls > 0
