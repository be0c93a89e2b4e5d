# SPDX-License-Identifier: Apache-2.0
"""The simulator side of the bench of aggregates; :mod:`sim.benches.runner` runs it."""

import random

import cocotb
from cocotb.clock import Clock
import numpy as np

from host.operators.meaning import reference_results
from host.operators.windowed import WindowedOperator
from host.protocol.codecs import AggregateCodec
from host.protocol.manifest import AggregateManifest
from host.reference.operator import Arrival
from sim.benches.settings import SETTINGS
from sim.benches.streams import STALLS, StreamSink, StreamSource, integers, reset, rows

__all__ = []

MANIFEST = AggregateManifest.load(SETTINGS["bundle"]) if SETTINGS else None

#: Steps in time from tuple to tuple, in panes: neighbours, bursts with gaps, and long silence.
STEPS = {"dense": (0, 0, 0, 1), "bursts": (*[0] * 30, 1, 2, 3), "silence": (0, 0, 1, 40)}


def tuples(operator, steps, seed):
    """Return random tuples in the order of their times, which are panes."""
    generator = random.Random(f"{seed} {steps}")
    time, arrivals = 0, []
    for _ in range(SETTINGS["tuples"]):
        time += generator.choice(STEPS[steps]) * operator.pane
        fields = {
            field.name: generator.randint(field.range.low, field.range.high)
            for field in operator.fields
        }
        arrivals.append(Arrival(time, fields))
    return arrivals


def packed(codec, arrivals, end):
    """Return the words of tuples, and of an end that all windows reach."""
    names = arrivals[0].payload
    columns = {name: np.array([one.payload[name] for one in arrivals]) for name in names}
    return np.concatenate(
        [
            codec.pack_tuples(np.array([one.timestamp for one in arrivals]), columns),
            codec.pack_control("WATERMARK", value=end),
            codec.pack_control("FLUSH"),
        ]
    )


def expected(operator, arrivals):
    """Return (boundary, key, values) of each value and (boundary,) of each star, in order."""
    found = []
    for result in reference_results(operator, arrivals):
        key, place = 0, 0
        for part, field in zip(result.key, operator.key_fields, strict=True):
            key |= part % (1 << field.bits) << place
            place += field.bits
        found.append((result.timestamp, key, result.values))
    stars = [(boundary, 1 << 64, None) for boundary in {boundary for boundary, *_ in found}]
    cores = MANIFEST.cores
    order = sorted(
        [*found, *stars], key=lambda one: (one[0], one[2] is None, one[1] % cores, one[1])
    )
    return [one if one[2] is not None else one[:1] for one in order]


def decoded(codec, operator, words):
    """Return result words in the same form, without the mark at their end."""
    results = codec.fields(words)
    assert results["kind"][-1] == MANIFEST.result_kinds["MARK"]
    names = [rule.name for rule in operator.reductions]
    values = zip(*(results[f"window.{name}"].tolist() for name in names), strict=True)
    shared = (results[name].tolist() for name in ("kind", "boundary", "key"))
    columns = zip(*shared, values, strict=True)
    stars = MANIFEST.result_kinds["STAR"]
    return [(at,) if kind == stars else (at, key, row) for kind, at, key, row in columns][:-1]


@cocotb.test()
@cocotb.parametrize(steps=list(STEPS), stalls=list(STALLS))
async def accelerator_aggregates(dut, steps, stalls):
    """Windows are those of the reference operator, whatever the stalls."""
    seed, (stall_in, stall_out) = SETTINGS["seed"], STALLS[stalls]
    # Expressions of results are the host's: the accelerator sends the reductions.
    operator = WindowedOperator.from_dict(MANIFEST.operator).with_(outputs=None, having=None)
    codec, arrivals = AggregateCodec(MANIFEST), tuples(operator, steps, seed)
    end = arrivals[-1].timestamp + operator.size + operator.pane
    words, answer = packed(codec, arrivals, end), expected(operator, arrivals)
    source = StreamSource(dut, "i", stalls=stall_in, seed=seed)
    sink = StreamSink(dut, "o", stalls=stall_out, seed=f"{seed}")
    Clock(dut.clk, 10, unit="ns").start()
    await reset(dut)

    kind, mark = MANIFEST.result_word["kind"], MANIFEST.result_kinds["MARK"]
    cocotb.start_soon(source.send(integers(words)))
    results = await sink.receive(
        lambda word: word >> kind.offset & (1 << kind.bits) - 1 == mark,
        deadline=SETTINGS["deadline"] + 8 * (len(words) + len(answer)) + 64 * end,
    )
    received = rows(results, MANIFEST.result_word.columns)
    codec.check(received)
    assert decoded(codec, operator, received) == answer
