# SPDX-License-Identifier: Apache-2.0
"""What a simulated accelerator answers to a scenario, and what it should have answered."""

import numpy as np

from host.device.simulated import SimulatedDevice
from host.device.software import SoftwareDevice
from host.words import WordCodec

__all__ = ["answer", "canonical", "expected_results", "same"]


def expected_results(path, scenario):
    """Return the results that the software device gives, one row each."""
    with SoftwareDevice(path) as device:
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


def canonical(manifest, results, *, free):
    """Return results as a list that is equal for equal answers.

    In order that is the results themselves; of an index, the pairs of a group are sorted. While
    order is free, each side's pairs between two of its stars are sorted, and sides are apart; marks
    stand in both.
    """
    rows = [tuple(int(value) for value in row) for row in results]
    fields = WordCodec(manifest).unpack_results(results)
    kinds = manifest.result_kinds
    if not free and manifest.engine == "index":
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


def same(manifest, received, expected):
    """Are these the results that are wanted, in the order that the engine promises?"""
    if manifest.engine == "scan":
        return np.array_equal(received, expected)
    return canonical(manifest, received, free=False) == canonical(manifest, expected, free=False)


def answer(bundle, scenario, *, seed=0, stall_in=0, stall_out=0, chunk=500, cycles=None):
    """Send the scenario in chunks; return all results, and add the ``cycles`` of each call."""
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
