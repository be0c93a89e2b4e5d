# SPDX-License-Identifier: Apache-2.0
"""The simulator side of the AXI shell's bench; :mod:`sim.benches.axi_runner` runs it."""

import json
from pathlib import Path

import cocotb
from cocotb.triggers import Combine, FallingEdge, ReadOnly
import numpy as np

from host.protocol.codecs import WordCodec
from sim.benches.accelerator import MANIFEST, SCENARIOS, deadline, joined
from sim.benches.axi_bench import PAUSES, SIDES, SLAVES, Bench
from sim.benches.axi_register_reader import RegisterReader
from sim.benches.settings import SETTINGS
from sim.benches.streams import integers
from sim.scenarios import assert_right, expected_results, make_scenario, merged_inputs

__all__ = []

#: Scenarios with words that several inputs cannot bring in the same order, and with words that mean
#: something else to their merge.
ONE_INPUT_ONLY = (
    "disorder", "words without meaning", "rare stars", "no stars", "time, rare stars",
    "time, mostly R", "hostile", "hostile again",
)  # fmt: skip
if len(SLAVES) > 1:
    SCENARIOS = [name for name in SCENARIOS if name not in ONE_INPUT_ONLY]
#: Words in a measurement of throughput, and cycles in which a backlog of results leaves.
MEASURED = 256
#: Cycles without a word taken after which the accelerator is full.
FULL = 500


@cocotb.test()
@cocotb.parametrize(scenario=SCENARIOS, pauses=list(PAUSES))
async def shell_joins(dut, scenario, pauses):
    """Every scenario gives the answer of the reference join, while registers are read as well."""
    bench = Bench(dut, pauses)
    made = make_scenario(MANIFEST, scenario, tuples=SETTINGS["tuples"], seed=SETTINGS["seed"])
    inputs = [made.words]
    if len(SLAVES) > 1:
        made, inputs = merged_inputs(MANIFEST, made, sides=SIDES, seed=SETTINGS["seed"])
    expected = expected_results(SETTINGS["bundle"], made)
    await bench.start()
    for channel in (*bench.sources, *bench.sinks):
        channel.deadline = deadline(made, len(expected))
    sent = bench.sending(map(integers, inputs))
    received = [cocotb.start_soon(bench.receive(sink, made.marks)) for sink in bench.sinks]
    reader = RegisterReader(bench)
    reading = cocotb.start_soon(reader.run())
    await Combine(*sent)
    results = joined([await words for words in received])
    reader.stop()
    await reading
    assert_right(SETTINGS["bundle"], made, results, expected=expected)
    await bench.write("CONTROL", 1 << 8 | 2)
    counted = {name: await bench.count(name) for name in ("MARKS", "INGRESS_BUSY", "CYCLES")}
    assert counted["MARKS"] == made.marks
    assert counted["INGRESS_BUSY"] == len(made.words)
    assert 0 < counted["CYCLES"] < bench.clock.cycle
    assert await bench.read("STATUS") == 0
    assert await bench.read("INTERRUPT_STATUS") & 1
    told = WordCodec(MANIFEST).unpack_results(results)
    assert (await bench.read("ERRORS") != 0) >= any_fault(told)


def any_fault(results):
    """Return whether a star or mark tells of a fault, which ERRORS then has to show."""
    return any(getattr(results, name).any() for name in ("overflow", "disorder", "illegal"))


def control(name, index=0, value=0):
    """Return a control word as an integer."""
    return integers(WordCodec(MANIFEST).pack_control(name, index, value))[0]


@cocotb.test(skip=bool(SETTINGS and SETTINGS["drivers"]))
async def shell_is_as_fast_as_stated(dut):
    """Measure words per cycle in and out, and the cycles that the shell adds."""
    bench = Bench(dut)
    await bench.start()
    inner = dut.accelerator.splitjoin
    result = MANIFEST.result_ports[0]
    seen = {}

    async def watch():
        """Note the cycles in which the first word enters and leaves the accelerator."""
        while "out" not in seen:
            await ReadOnly()
            if inner.i_valid.value and inner.i_ready.value:
                seen.setdefault("in", bench.clock.cycle)
            if getattr(inner, f"{result}_valid").value:
                seen.setdefault("out", bench.clock.cycle)
            await FallingEdge(dut.aclk)

    # The shell has taken nothing yet, and the accelerator is idle.
    for _ in range(64):
        await FallingEdge(dut.aclk)
    watching = cocotb.start_soon(watch())
    await Combine(*bench.sending(bench.all_inputs([control("FLUSH")])))
    await bench.receive(bench.sinks[0], 1)
    for sink in bench.sinks[1:]:
        await bench.receive(sink, 1)
    await watching
    before = seen["in"] - max(source.stamps[0] for source in bench.sources)
    behind = bench.sinks[0].stamps[0] - seen["out"]

    into = await undisturbed(bench)
    out = await saturated(bench)
    measured = {"in": into, "out": out, "before": before, "behind": behind}
    Path(SETTINGS["coverage"]).write_text(json.dumps(measured))
    assert 0.99 < into <= 1 if len(SLAVES) > 1 else into == 1
    # A join aggregate has a result for each probe, and those of a pass wait for the next one.
    assert out == 1 or "PAIR" not in MANIFEST.result_kinds
    levels = (
        len(SLAVES) - 1
    ).bit_length()  # of merges in a ScaleGate, whose latency is 3 + 3 * levels
    assert before + behind == 2 + (3 + 3 * levels) * (levels > 0)


def alternating(bench, times):
    """Return what the inputs bring of tuples that come at one after the other; sides alternate."""
    inputs = np.arange(len(times)) % max(2, len(SLAVES))
    sides = np.array(SIDES)[inputs] if len(SLAVES) > 1 else inputs
    fields = {key.name: np.zeros(len(times), np.int64) for key in MANIFEST.keys}
    words = WordCodec(MANIFEST).pack_tuples(sides, fields, times.astype(np.uint64))
    if len(bench.sources) == 1:
        return [integers(words)]
    return [integers(words[inputs == number]) for number in range(len(SLAVES))]


async def undisturbed(bench):
    """Return words per cycle into the shell while the accelerator drops them in every cycle.

    One input brings illegal words. Several inputs bring tuples behind one that is out of order,
    which are counted where they enter the accelerator: the queues of the merge take words of all
    inputs at once while they fill up.
    """
    for source in bench.sources:
        source.stamps.clear()
    if len(bench.sources) == 1:
        place = MANIFEST.input_word["control.op"]
        assert 15 not in MANIFEST.operations.values()
        await bench.send(bench.sources[0], [control("FLUSH") | 15 << place.offset] * MEASURED)
        stamps = bench.sources[0].stamps
    else:
        inputs = len(SLAVES)
        first = alternating(bench, np.array([9] * inputs + [8] + [9] * (inputs - 1)))
        tuples = alternating(bench, np.arange(9, 9 + MEASURED))
        words = [[*some, *others] for some, others in zip(first, tuples, strict=True)]
        stamps = []
        watching = cocotb.start_soon(entering(bench, stamps))
        await Combine(*bench.sending(words))
        for _ in range(FULL):
            await FallingEdge(bench.dut.aclk)
        watching.cancel()
        assert MEASURED < len(stamps) <= MEASURED + 2 * inputs
        stamps = stamps[MEASURED // 2 : MEASURED]
    into = (len(stamps) - 1) / (stamps[-1] - stamps[0])
    if len(bench.sources) > 1:
        await Combine(*bench.sending(bench.all_inputs([control("CLEAR")])))
        for sink in bench.sinks:
            await bench.receive(sink, 1)
    return into


async def entering(bench, stamps):
    """Note the cycles in which words enter the accelerator."""
    inner = bench.dut.accelerator.splitjoin
    while True:
        await ReadOnly()
        if inner.i_valid.value and inner.i_ready.value:
            stamps.append(bench.clock.cycle)
        await FallingEdge(bench.dut.aclk)


async def saturated(bench):
    """Return words per cycle out of the first port while results wait for it."""
    count = 8 * MEASURED
    times = np.zeros(count) if len(bench.sources) == 1 else np.arange(count)
    sending = bench.sending(alternating(bench, times))
    await FallingEdge(bench.dut.aclk)
    # When no word is taken for some time, the accelerator is full of results.
    while bench.clock.cycle - bench.last_taken() < FULL:
        assert not any(task.done() for task in sending)
        await FallingEdge(bench.dut.aclk)

    async def drain(sink):
        while True:
            await sink.take()

    # A port that is not read would stop the other one after some time.
    others = [cocotb.start_soon(drain(sink)) for sink in bench.sinks[1:]]
    sink = bench.sinks[0]
    sink.stamps.clear()
    for _ in range(MEASURED):
        await sink.take()
    for task in (*sending, *others):
        task.cancel()
    return (MEASURED - 1) / (sink.stamps[-1] - sink.stamps[0])
