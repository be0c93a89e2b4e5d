# SPDX-License-Identifier: Apache-2.0
"""Compute the right answer to a scenario, and check the answer of an accelerator.

The software device computes the reference join in the order of the hardware. This module adds how
far the order is determined, and which pairs are not reliable.
"""

import numpy as np

from host.devices.simulated import SimulatedDevice
from host.devices.software import SoftwareDevice
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import JoinAggregateManifest, load_join_manifest
from sim.scenarios.ports import by_side

__all__ = ["answer", "assert_right", "canonical", "expected_results", "without_pairs"]


def expected_results(bundle, scenario):
    """Return the software device's results for a scenario, one per row."""
    with SoftwareDevice(bundle) as device:
        codec = WordCodec(device.manifest)
        chunks = []
        sent = 0
        results = np.zeros((4096, device.manifest.result_word.columns), np.uint64)
        while True:
            answer = device.exchange(scenario.words[sent:], results, cycles=1)
            sent += answer.accepted
            chunks.append(codec.split_words(results[: answer.produced].copy())[0])
            if not answer.produced and sent == len(scenario.words):
                return np.concatenate(chunks)


def answer(bundle, scenario, *, seed=0, stall_in=0, stall_out=0, chunk=500, cycles=None):
    """Return the simulator library's results for a scenario, one per row.

    Parameters
    ----------
    bundle : path-like
        Bundle with its library.
    scenario : Scenario
        Scenario to send.
    seed, stall_in, stall_out
        As for :class:`host.devices.simulated.SimulatedDevice`.
    chunk : int
        Largest number of words, and of results, in one exchange.
    cycles : list, optional
        If given, the number of cycles of each exchange is appended to it.
    """
    received, sent, marks = [], 0, 0
    with SimulatedDevice(bundle, seed=seed, stall_in=stall_in, stall_out=stall_out) as device:
        codec = WordCodec(device.manifest)
        results = np.zeros((chunk, device.manifest.result_word.columns), np.uint64)
        budget = 4_000_000
        while marks < scenario.marks:
            done = device.exchange(scenario.words[sent : sent + chunk], results, cycles=10_000)
            sent += done.accepted
            budget -= done.cycles
            if cycles is not None:
                cycles.append(done.cycles)
            received.append(codec.split_words(results[: done.produced].copy())[0])
            marks += int(codec.marks(received[-1]).sum())
            assert budget > 0, f"no end in sight (seed {seed}); counters {device.counters()}"
    return np.concatenate(received)


def canonical(manifest, results, *, free):
    """Return results as a list that is equal for equal answers.

    If the order is fixed, the list holds the results themselves, except that an index's pairs of a
    group are sorted. If the order is free, the sides are separate, and each side's pairs between
    two of its stars are sorted; marks belong to both sides. Of two result ports, whose order among
    each other is never fixed, R's results come first up to each mark.
    """
    if len(manifest.result_ports) > 1:
        results = by_side(WordCodec(manifest), results)
    rows = [tuple(int(value) for value in row) for row in results]
    fields = WordCodec(manifest).unpack_results(results)
    kinds = manifest.result_kinds
    if not free and not manifest.keeps_stored_order:
        stops = np.flatnonzero(fields.kind != kinds["PAIR"]) + 1
        parts = np.split(np.arange(len(rows)), stops)
        return [
            row
            for part in parts
            for row in sorted(rows[n] for n in part[:-1]) + [rows[n] for n in part[-1:]]
        ]
    if not free:
        return rows
    sides = ([], [])
    for side in range(2):
        bag = []
        for row, kind, owner in zip(rows, fields.kind, fields.side, strict=True):
            if kind == kinds["PAIR"] and owner == side:
                bag.append(row)
            elif kind == kinds["MARK"] or (kind == kinds["STAR"] and owner == side):
                sides[side].append((sorted(bag), row))
                bag = []
        assert not bag, "pairs after the last star"
    return sides


def assert_right(bundle, scenario, results, *, expected=None):
    """Compare an accelerator's results with those of the software device.

    Parameters
    ----------
    bundle : path-like
        Bundle of the accelerator.
    scenario : Scenario
        Scenario that was sent.
    results : array of uint64
        All results, one per row.
    expected : array of uint64, optional
        Result of :func:`expected_results`, if it is already available.

    Raises
    ------
    AssertionError
        If a star, a mark or one of their flags is wrong; unless the scenario is faulty, also if a
        pair or its place is wrong.
    """
    manifest = load_join_manifest(bundle)
    if expected is None:
        expected = expected_results(bundle, scenario)
    if scenario.faulty:
        results, expected = (without_pairs(manifest, some) for some in (results, expected))
    if isinstance(manifest, JoinAggregateManifest):  # its order is always fixed
        np.testing.assert_array_equal(results, expected)
        return
    is_exact = manifest.keeps_stored_order and not scenario.free
    if is_exact and len(manifest.result_ports) == 1:
        np.testing.assert_array_equal(results, expected)  # faster, and names the differences
        return
    received, wanted = (
        canonical(manifest, some, free=scenario.free) for some in (results, expected)
    )
    assert received == wanted, "the results are not those of the reference join"


def without_pairs(manifest, results):
    """Return the results that are stars and marks, not pairs, or values of a join aggregate."""
    (datum,) = {"PAIR", "VALUE"} & manifest.result_kinds.keys()
    kinds = unpack_field(results, manifest.result["kind"])
    return results[kinds != manifest.result_kinds[datum]]
