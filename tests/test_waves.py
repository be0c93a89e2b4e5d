# SPDX-License-Identifier: Apache-2.0
"""The timing diagrams of the documents are drawn from their sources, and are true."""

import json
from pathlib import Path
import runpy

from amaranth import Module
from amaranth.sim import Simulator
import pytest

from hdl.counters import CounterBank, counters_of
from hdl.presets import PRESETS
from hdl.shells.axi_streams import AxiLiteSlave

WAVES = Path(__file__).resolve().parent.parent / "docs" / "waves"
SOURCES = sorted(WAVES.glob("*.json"))


def signals(entries):
    """Yield the signals of a diagram, those in groups among them."""
    for entry in entries:
        if isinstance(entry, list):
            yield from signals(entry[1:])
        elif entry:
            yield entry


def cycles(signal):
    """Return what a signal is in each cycle: "0", "1", None, or the text of its data."""
    states, data = [], iter(signal.get("data", ()))
    for mark in signal["wave"]:
        if mark == ".":
            states.append(states[-1])
        elif mark.isdecimal() and mark > "1":
            states.append(next(data))
        else:
            states.append(None if mark == "x" else mark)
    assert not list(data)
    return states


def diagram(path):
    """Return the signals of a diagram by name, cycle by cycle."""
    return {
        signal["name"]: cycles(signal)
        for signal in signals(json.loads(path.read_text(encoding="utf-8"))["signal"])
    }


def test_the_drawings_are_those_of_the_sources():
    drawn = runpy.run_path(str(WAVES / "render.py"))["rendered"]()
    assert len(drawn) == len(SOURCES) > 0
    stale = [path.name for path, text in drawn.items() if path.read_text("utf-8") != text]
    assert not stale, "draw them again: make reference"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_diagram_keeps_the_rules_of_streams(path):
    shown = diagram(path)
    assert len({len(states) for states in shown.values()}) == 1
    valids = [name for name in shown if name.endswith("valid")]
    assert valids
    for valid in valids:
        stream = valid.removesuffix("valid")
        ready, shake = shown[f"{stream}ready"], {valid, f"{stream}ready"}
        names = [name for name in shown if name.startswith(stream) and name not in shake]
        payload = [shown[name] for name in names]
        for now in range(len(ready) - 1):
            if shown[valid][now] == "1":
                assert all(states[now] is not None for states in payload)
                if ready[now] == "0":  # a word that is not taken stays
                    assert shown[valid][now + 1] == "1"
                    assert all(states[now] == states[now + 1] for states in payload)


def test_a_counter_answers_in_the_cycles_that_the_diagram_shows():
    shown = diagram(WAVES / "accelerator-words.json")
    bank = CounterBank(PRESETS["tiny"])
    asked = [name for name in shown["counter_addr"] if name is not None]
    first = shown["counter_data"].index("cycles")
    assert [counters_of(PRESETS["tiny"])[int(n)].name for n in asked] == ["cycles", "tuples_r"]
    assert first - shown["counter_addr"].index(asked[0]) == bank.latency


def test_a_register_is_read_in_the_cycles_that_the_diagram_shows():
    shown = diagram(WAVES / "axi-register-read.json")
    m = Module()
    m.submodules.slave = slave = AxiLiteSlave()
    m.d.sync += slave.bus.done.eq(slave.bus.read & ~slave.bus.done)
    m.d.comb += slave.bus.answer.eq(0x5A)
    seen = {"s_axi_arready": [], "s_axi_rvalid": [], "s_axi_rdata": []}

    async def master(ctx):
        for arvalid, rready in zip(shown["s_axi_arvalid"], shown["s_axi_rready"], strict=True):
            ctx.set(slave.axi.arvalid, int(arvalid))
            ctx.set(slave.axi.rready, int(rready))
            for name, states in seen.items():
                states.append(ctx.get(getattr(slave.axi, name.removeprefix("s_axi_"))))
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(master)
    simulator.run()
    for name in ("s_axi_arready", "s_axi_rvalid"):
        assert "".join(map(str, seen[name])) == "".join(shown[name]), name
    answered = shown["s_axi_rdata"].index("ERRORS")
    assert seen["s_axi_rdata"][answered] == 0x5A
    assert answered - shown["s_axi_arvalid"].index("1") == slave.latency
