# SPDX-License-Identifier: Apache-2.0
"""The runs behind the figures of epochs: small ones, and ones in which something is wrong."""

from amaranth import Module, Signal
import numpy as np
import pytest

from hdl.ingress.side_turns import SideTurns
from host.reference.join import reference_join
from host.reference.window import CountWindow, TimeWindow
from sim.figures import epoch_joins
from sim.figures.epoch_broadcast import Broadcast, EpochRun
from sim.figures.epoch_joins import compare
from sim.figures.epochs import ENGINES, STEPS
from tests.host.small_bundles import write_manifest


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


def test_the_steps_are_those_of_table_iv():
    """Threads before a step, and those after provisioning and after decommissioning."""
    up = dict(step for step in STEPS if step[1] > step[0])
    down = dict(step for step in STEPS if step[1] < step[0])
    assert up == {1: 2, 5: 9, 9: 16, 18: 31, 30: 52, 40: 69}
    assert down == {5: 2, 9: 3, 18: 7, 30: 12, 40: 17, 60: 25, 70: 30}
    assert len(STEPS) == len(up) + len(down)


def test_turns_of_another_epoch_are_noticed(monkeypatch):
    follow = SideTurns.following
    monkeypatch.setattr(SideTurns, "following", lambda self, turn, bank: follow(self, turn, ~bank))
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

    monkeypatch.setattr("sim.figures.epoch_broadcast.Broadcast", Pausing)
    run = EpochRun(2, [(1, 2)])
    run.run()
    assert run.stalls > 0


@pytest.fixture(scope="module", params=sorted(ENGINES))
def device(request, tmp_path_factory):
    """URI of a software device with the parameters of an accelerator of the figure."""
    folder = tmp_path_factory.mktemp("epochs") / "bundle"
    return f"software:{write_manifest(ENGINES[request.param], folder)}"


@pytest.mark.parametrize("window", [CountWindow(24), TimeWindow(40)])
def test_random_epochs_lose_and_repeat_nothing(device, window):
    found = compare(device, window, tuples=3_000, epochs=60, seed=3)
    assert found.bad == 0
    assert found.pairs > 500
    assert found.epochs + found.superseded == 60
    assert found.epochs > 30


@pytest.mark.parametrize(("size", "name"), [(25, "lost"), (23, "wrong")])
def test_pairs_that_differ_are_counted(device, monkeypatch, size, name):
    def other(arrivals, predicate, window):
        return reference_join(arrivals, predicate, CountWindow(size))

    monkeypatch.setattr(epoch_joins, "reference_join", other)
    found = compare(device, CountWindow(24), tuples=1_000, epochs=10, seed=4)
    assert found.bad == getattr(found, name) > 0


def test_repeated_pairs_are_counted(device, monkeypatch):
    pairs = epoch_joins.TableJoin.pairs

    class Repeating(epoch_joins.TableJoin):
        @property
        def pairs(self):
            return tuple(np.append(rows, rows[[0, 0]]) for rows in pairs.fget(self))

    monkeypatch.setattr(epoch_joins, "TableJoin", Repeating)
    found = compare(device, CountWindow(24), tuples=1_000, epochs=10, seed=4)
    assert (found.lost, found.repeated, found.wrong) == (0, 2, 0)
