# SPDX-License-Identifier: Apache-2.0
"""The simulator side of the accelerator bench; :mod:`sim.benches.runner` runs it, not pytest."""

from importlib import import_module
import json
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock

from host.protocol.codecs import WordCodec
from host.protocol.manifest import load_join_manifest
from sim.benches.settings import SETTINGS
from sim.benches.streams import STALLS, StreamSink, StreamSource, integers, reset, rows
from sim.scenarios import (
    Cases,
    Crosses,
    Flow,
    assert_chain_right,
    assert_right,
    chain_answer,
    expected_results,
    make_scenario,
    names,
)
from sim.scenarios.ports import merge_ports

__all__ = []

MANIFEST = load_join_manifest(SETTINGS["bundle"]) if SETTINGS else None
SCENARIOS = names(MANIFEST) if MANIFEST else []
#: How many scenarios so far have met each case, and how many words each cross.
CASES = Cases(MANIFEST) if MANIFEST else None
CROSSES = Crosses(MANIFEST) if MANIFEST else None


async def start(dut):
    """Start the clock and reset the accelerator, and the memories that its windows may be in."""
    Clock(dut.clk, 10, unit="ns").start()
    if MANIFEST.memory is not None:
        module, _, function = SETTINGS["memories"].partition(":")
        getattr(import_module(module), function)(dut, MANIFEST, SETTINGS["seed"])
    await reset(dut)


def last_of(marks):
    """Return a function that tells of each word in turn whether it is the last of some marks."""
    kind, seen = MANIFEST.result_word["kind"], 0

    def is_last(word):
        nonlocal seen
        seen += word >> kind.offset & (1 << kind.bits) - 1 == MANIFEST.result_kinds["MARK"]
        return seen == marks

    return is_last


def joined(ports):
    """Return the results of all ports, one per row; ``ports`` are the words of each."""
    codec = WordCodec(MANIFEST)
    results = [codec.split_words(rows(words, MANIFEST.result_word.columns))[0] for words in ports]
    return results[0] if len(results) == 1 else merge_ports(codec, *results)


@cocotb.test()
@cocotb.parametrize(scenario=SCENARIOS, stalls=list(STALLS))
async def accelerator_joins(dut, scenario, stalls):
    """Every scenario gives the answer of the reference join, whatever the stalls.

    That of a chain is compared as pairs between two marks.
    """
    seed = SETTINGS["seed"]
    made = make_scenario(MANIFEST, scenario, tuples=SETTINGS["tuples"], seed=seed)
    stall_in, stall_out = STALLS[stalls]
    dut._log.info(f"{scenario}, stalls {stalls}: {len(made.words)} words, seed {seed}")
    source = StreamSource(dut, "i", stalls=stall_in, seed=seed)
    sinks = [
        StreamSink(dut, name, stalls=stall_out, seed=f"{seed}{name[1:]}")
        for name in MANIFEST.result_ports
    ]
    await start(dut)

    bundle, is_chain = SETTINGS["bundle"], MANIFEST.chain is not None
    expected = chain_answer(MANIFEST, made.words) if is_chain else expected_results(bundle, made)
    limit = deadline(made, len(expected))
    cocotb.start_soon(source.send(integers(made.words)))
    receiving = [
        cocotb.start_soon(sink.receive(last_of(made.marks), deadline=limit)) for sink in sinks
    ]
    results = joined([await words for words in receiving])
    if is_chain:
        assert_chain_right(MANIFEST, results, expected)
    else:
        assert_right(bundle, made, results, expected=expected)
    untaken = sum(sink.untaken for sink in sinks)
    CASES.sample(made, results, Flow(source.withheld, source.refused, untaken))
    CROSSES.sample(made.words, source.waits)
    crosses = [[*names, count] for names, count in CROSSES.met.items()]
    Path(SETTINGS["coverage"]).write_text(json.dumps({"cases": CASES.met, "crosses": crosses}))


def deadline(scenario, results):
    """Return how many cycles a scenario may take: a full scan or bucket per word, plus stalls.

    The environment variable ``SPLITJOIN_BENCH_DEADLINE`` overrides the number, for tests of a bench
    that fails.
    """
    if given := os.environ.get("SPLITJOIN_BENCH_DEADLINE"):
        return int(given)
    probe = MANIFEST.storage.sub_window // MANIFEST.storage.lanes + 20
    if MANIFEST.index is not None:
        probe += 1 << MANIFEST.index.bucket_bits
    return 4000 + 16 * len(scenario.words) * probe + 8 * results
