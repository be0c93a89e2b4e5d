# SPDX-License-Identifier: Apache-2.0
"""A small join in words, and the results that the reference join has for it."""

from dataclasses import dataclass
import time

import numpy as np

from host.device import Device
from host.device.software import SoftwareDevice
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.selftest.finding import StepFailedError
from host.words import WordCodec

__all__ = ["SmallJoin", "answer", "difference", "small_join"]

#: Tuples of a window at most, so that windows overflow into the past within a small join.
WINDOW = 50
#: Values of a key, around zero or from zero on, so that about one pair in ten matches.
VALUES = 11
#: Result words that a device may return at once, and cycles of one exchange with a simulation.
ROOM, CYCLES = 256, 20_000


@dataclass(frozen=True, eq=False)
class SmallJoin:
    """Input words of a join, and what it must answer.

    Attributes
    ----------
    words : UInt64s
        Input words: the configuration, tuples, FLUSH.
    results : UInt64s
        Results of the reference join, as :func:`in_order` has them.
    marks : int
        Marks among them; the last one is the last word.
    tuples : tuple of int
        Tuples of R and of S.
    """

    words: UInt64s
    results: UInt64s
    marks: int
    tuples: tuple[int, int]


def small_join(manifest: Manifest, *, tuples: int, seed: int) -> SmallJoin:
    """Return a join of random tuples over count-based windows, with a star for each probe.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    tuples : int
        Tuples of both sides together.
    seed : int
        Of the tuples.

    Raises
    ------
    ManifestError
        If the accelerator has no model in software.
    """
    codec, rng = WordCodec(manifest), np.random.default_rng(seed)
    words = [
        codec.pack_control(name, index, value)
        for index in range(len(manifest.keys))
        for name, value in (("BOUND_LOW", -1), ("BOUND_HIGH", 1))
        if name in manifest.operations
    ]
    size = min(WINDOW, manifest.capacity)
    words += [codec.pack_control("WINDOW", side, size) for side in range(2)]
    words += [codec.pack_control("PRECISION", 0, 1), codec.pack_control("CLEAR")]
    keys = {}
    for key in manifest.keys:
        low = max(-(VALUES // 2), key.low)
        values = rng.integers(low, min(low + VALUES - 1, key.high), tuples, endpoint=True)
        keys[key.name] = values.astype(np.int64 if key.signed else np.uint64)
    sides = rng.integers(0, 2, tuples)
    times = np.minimum(np.arange(tuples), min(tuples, (1 << manifest.timestamp_bits) - 1))
    words.append(codec.pack_tuples(sides, keys, times))
    words.append(codec.pack_control("FLUSH"))
    asked = np.ascontiguousarray(np.concatenate(words))
    marks = sum(name in manifest.operations for name in ("PRECISION", "CLEAR", "FLUSH"))
    with SoftwareDevice(manifest) as model:
        results = in_order(manifest, answer(model, asked, marks, seconds=60.0))
    counts = int((sides == 0).sum()), int((sides == 1).sum())
    return SmallJoin(asked, results, marks, counts)


def answer(device: Device, words: UInt64s, marks: int, *, seconds: float) -> UInt64s:
    """Send words to a device, and return all results up to the last mark.

    Parameters
    ----------
    device : Device
        An open device.
    words : UInt64s
        Input words.
    marks : int
        Marks that will come.
    seconds : float
        Longest time without a word in either direction.

    Raises
    ------
    StepFailedError
        If nothing happens for so long.
    """
    codec, sent, left = WordCodec(device.manifest), len(words), marks
    found: list[UInt64s] = []
    end = time.monotonic() + seconds
    while left > 0:
        results = np.zeros((ROOM, device.manifest.result_word.columns), np.uint64)
        done = device.exchange(words, results, cycles=CYCLES)
        words = words[done.accepted :]
        some = results[: done.produced]
        found.append(some)
        left -= int(codec.marks(some).sum())
        if done.accepted or done.produced:
            end = time.monotonic() + seconds
        elif time.monotonic() > end:
            raise StepFailedError(
                f"nothing came for {seconds:g} s: {sent - len(words)} of {sent} input words were "
                f"taken, {sum(map(len, found))} result words have come, and {left} of {marks} "
                "marks have not"
            )
    return np.concatenate(found)


def in_order(manifest: Manifest, words: UInt64s) -> UInt64s:
    """Return the results in result words in an order that does not depend on anybody's stalls.

    Of two result ports, the results of R come before those of S up to each mark. The pairs of one
    probe, which an index finds in any order, are sorted.
    """
    codec = WordCodec(manifest)
    results = codec.split_words(words)[0]
    fields = codec.unpack_results(results)
    if len(manifest.result_ports) > 1:
        is_mark = fields.kind == codec.mark
        epochs = np.cumsum(is_mark) - is_mark
        order = np.lexsort((np.where(is_mark, 2, fields.side), epochs))
        results, fields = results[order], codec.unpack_results(results[order])
    if manifest.engine == "index":
        is_pair = fields.kind == codec.pair
        periods = np.cumsum(~is_pair)
        periods -= ~is_pair  # a star ends the period of its probe
        results = results[np.lexsort((*results.T, ~is_pair, periods))]
    return results


def difference(manifest: Manifest, found: UInt64s, wanted: UInt64s) -> str:
    """Return what distinguishes results from those that were wanted; empty if nothing does.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    found : UInt64s
        Result words of a device.
    wanted : UInt64s
        :attr:`SmallJoin.results`.
    """
    results = in_order(manifest, found)
    if np.array_equal(results, wanted):
        return ""
    least = min(len(results), len(wanted))
    unlike = np.flatnonzero((results[:least] != wanted[:least]).any(axis=1))
    if not len(unlike):
        return f"{len(results)} results have come, and the reference join has {len(wanted)}"
    at = int(unlike[0])
    kinds = {number: name for name, number in manifest.result_kinds.items()}
    told = [
        f"{kinds.get(int(WordCodec(manifest).unpack_results(rows[at : at + 1]).kind[0]))} "
        f"{rows[at].tobytes().hex()}"
        for rows in (results, wanted)
    ]
    return (
        f"{len(unlike)} of {least} results differ from those of the reference join; the first one "
        f"is number {at}: {told[0]} instead of {told[1]} (fields from the lowest byte up)"
    )
