# SPDX-License-Identifier: Apache-2.0
"""The simulator side of the bench of an aggregate's shell (:mod:`sim.benches.axi_runner`)."""

import json
from pathlib import Path

import cocotb
from cocotb.triggers import Combine, FallingEdge
import numpy as np

from host.operators.windowed import WindowedOperator
from host.protocol.codecs import AggregateCodec
from sim.benches.aggregate import STEPS, decoded, expected, packed, tuples
from sim.benches.axi_bench import MANIFEST, PAUSES, SLAVES, Bench
from sim.benches.axi_register_reader import RegisterReader
from sim.benches.settings import SETTINGS
from sim.benches.streams import integers, rows

__all__ = []

#: Tuples of each input in a measurement of throughput.
MEASURED = 256


def operator_of():
    """Return the operator without its expressions of results, which are the host's."""
    return WindowedOperator.from_dict(MANIFEST.operator).with_(outputs=None, having=None)


def shared_out(arrivals, generator):
    """Return the tuples of each input, of which each has some, in order."""
    inputs = [[one] for one in arrivals[: len(SLAVES)]]
    for one in arrivals[len(SLAVES) :]:
        generator.choice(inputs).append(one)
    return inputs


@cocotb.test()
@cocotb.parametrize(steps=list(STEPS), pauses=list(PAUSES))
async def shell_aggregates(dut, steps, pauses):
    """Windows are those of the reference operator, while registers are read as well."""
    bench, operator, codec = Bench(dut, pauses), operator_of(), AggregateCodec(MANIFEST)
    arrivals = tuples(operator, steps, SETTINGS["seed"])
    end = arrivals[-1].timestamp + operator.size + operator.pane
    answer = expected(operator, arrivals)
    inputs = [packed(codec, some, end) for some in shared_out(arrivals, bench.random)]
    await bench.start()
    for channel in (*bench.sources, *bench.sinks):
        channel.deadline = 4000 + 16 * (len(arrivals) + len(answer)) + 64 * end
    sent = bench.sending(map(integers, inputs))
    receiving = cocotb.start_soon(bench.receive(bench.sinks[0], 1))
    reader = RegisterReader(bench)
    reading = cocotb.start_soon(reader.run())
    await Combine(*sent)
    received = rows(await receiving, MANIFEST.result_word.columns)
    reader.stop()
    await reading
    codec.check(received)
    assert decoded(codec, operator, received) == answer
    await bench.write("CONTROL", 1 << 8 | 2)
    stars = sum(len(one) == 1 for one in answer)
    counted = {name: await bench.count(name) for name in ("TUPLES", "RESULTS", "STARS", "MARKS")}
    assert counted == {
        "TUPLES": len(arrivals), "RESULTS": len(answer) - stars, "STARS": stars, "MARKS": 1,
    }  # fmt: skip
    for name in ("STATUS", "ERRORS"):
        assert await bench.read(name) == 0


@cocotb.test(skip=bool(SETTINGS and SETTINGS["drivers"]))
async def shell_takes_a_tuple_per_cycle(dut):
    """Measure tuples per cycle of all inputs together, in a single pane."""
    bench, operator, codec = Bench(dut), operator_of(), AggregateCodec(MANIFEST)
    await bench.start()
    for _ in range(64):  # until the accelerator has left reset
        await FallingEdge(dut.aclk)
    count = MEASURED * len(SLAVES)

    def control(name, value=0):
        return integers(codec.pack_control(name, value=value))

    begin = control("PANE", 2 * count) + control("CLEAR")
    await Combine(*bench.sending(bench.all_inputs(begin)))
    await bench.receive(bench.sinks[0], 1)
    for source in bench.sources:
        source.stamps.clear()
    fields = {field.name: np.zeros(count, np.int64) for field in operator.fields}
    words = integers(codec.pack_tuples(np.arange(count), fields))
    await Combine(*bench.sending([words[n :: len(SLAVES)] for n in range(len(SLAVES))]))
    # At first the queues of the merge fill up, faster than words leave it; in the end they run dry.
    stamps = sorted(at for source in bench.sources for at in source.stamps)
    stamps = stamps[count // 4 : 3 * count // 4]
    into = (len(stamps) - 1) / (stamps[-1] - stamps[0])
    Path(SETTINGS["coverage"]).write_text(json.dumps({"in": into}))
    assert 0.99 < into <= 1.01 if len(SLAVES) > 1 else into == 1
