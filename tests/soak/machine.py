# SPDX-License-Identifier: Apache-2.0
"""A compiled accelerator, driven through the C interface of its simulator library."""

import ctypes
from dataclasses import dataclass
import os

import numpy as np

from .words import WordLayout, parameters_of

__all__ = ["Fault", "Feeding", "Machine", "Pace", "Run"]

#: Cycles at the end in which nothing must come.
QUIET = 300
ROOM = 1 << 14
#: Result words of a program, more than any has, even where each tuple of an overflowed window is
#: paired with all that are stored; an accelerator that sends more has no end.
MOST_WORDS = 1 << 25
#: Small calls between two leaps.
SMALL = 25


@dataclass(frozen=True)
class Pace:
    """Latency model of the external memories: latency, jitter and pauses.

    Parameters
    ----------
    latency, jitter : int
        Least number of cycles until an answer, and how many more it may take.
    stalls : int
        In how many of 256 cycles a channel pauses.
    """

    latency: int
    jitter: int = 0
    stalls: int = 0

    def slowness(self, work):
        """Return how many cycles may pass in place of ``work`` cycles of a perfect memory.

        Reads of 16 rows are under way at any time (``docs/external-windows.md``), unless the rows
        that they wait for are on the chip.
        """
        longest = self.latency + self.jitter
        return (work * (1 + longest // 16) + 4 * longest) * 256 // (256 - self.stalls)


class Done(ctypes.Structure):
    """What one call of ``splitjoin_exchange`` did."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("accepted", "produced", "cycles")]


@dataclass(frozen=True)
class Fault:
    """A core that fails while a program runs.

    Parameters
    ----------
    core : int
    kind : str
        What it does, for people.
    variable : str
        Environment variable from which a library reads its faults.
    value : int
    """

    core: int
    kind: str
    variable: str
    value: int


@dataclass(frozen=True)
class Feeding:
    """How words are offered and results are taken.

    Parameters
    ----------
    seed : int
        Of the stalls, of what memories hold at the start, and of the sizes below.
    stall_in, stall_out : int
        In how many of 256 cycles a word is withheld, and a result is not taken.
    words, room, cycles : int
        Words offered, results taken, cycles run in one call at the most; sizes are drawn at random
        from zero on. All calls are as large as can be if ``words`` is 0.
    leap : int
        Cycles of one call, with as many words and results as can be, after every few of those;
        0 for none.
    before : int
        Cycles that the accelerator takes words of the program before it is reset, and begins.
    fault : Fault, optional
        Only for libraries whose cores can fail.
    memory : Pace, optional
        Only for accelerators whose windows are in external memory.
    """

    seed: int
    stall_in: int = 0
    stall_out: int = 0
    words: int = 0
    room: int = 0
    cycles: int = 0
    leap: int = 0
    before: int = 0
    fault: Fault | None = None
    memory: Pace | None = None


@dataclass(frozen=True)
class Run:
    """Record of one run of a program: results, faults and counters.

    Parameters
    ----------
    words : uint64 array
        Result words.
    cycles : int
    trouble : str or None
        What stood still, or came after the end.
    counters : dict
        Performance counters at the end.
    """

    words: np.ndarray
    cycles: int
    trouble: str | None
    counters: dict


class Machine:
    """The simulator library of a bundle.

    Parameters
    ----------
    path : path-like
        The library; every path is loaded once in a process.
    manifest : dict
        As read from ``manifest.json``.
    """

    def __init__(self, path, manifest):
        self.manifest = manifest
        self.result = WordLayout(manifest["result_word"])
        library = ctypes.CDLL(str(path))
        address, number, small = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
        exchange = [address, address, number, address, number, number, address, address, address]
        pace = [("memory", None, [address, number, number, small, small])]
        for name, result, arguments in [
            *(pace if "memory" in manifest else ()),
            ("create", address, [number, small, small]),
            ("destroy", None, [address]),
            ("reset", None, [address]),
            ("counter", number, [address, small]),
            ("exchange", None, exchange),
        ]:
            function = getattr(library, f"splitjoin_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def patience(self, feeding):
        """Return how many cycles may pass in which no word goes in and no result comes out."""
        parameters, storage = parameters_of(self.manifest), self.manifest["storage"]
        buckets = 1 << self.manifest.get("index", {"bucket_bits": 0})["bucket_bits"]
        entries = storage["ring_rows"] * storage["lanes"]
        if "chain" in self.manifest:  # where tuples leave one by one before a mark
            entries *= storage["cores"]
        work = (parameters["probes"] + 4) * (6 * entries + 2 * buckets)
        # The deadline of a failed core is less than four times that number.
        work += 2 * parameters.get("failure_cycles", 0)
        if feeding.memory:
            work = feeding.memory.slowness(work)
        return (4000 + 4 * work) * 256 // (256 - max(feeding.stall_in, feeding.stall_out))

    def run(self, words, marks, feeding):
        """Return the :class:`Run` of a program that ``marks`` marks answer, the last word one."""
        fault = feeding.fault
        if fault:
            os.environ[fault.variable] = str(fault.value)
        handle = self.create(feeding.seed, feeding.stall_in, feeding.stall_out)
        try:
            if feeding.memory:
                pace = feeding.memory
                self.memory(handle, pace.latency, pace.jitter, pace.stalls, 0)
            if feeding.before:
                self.disturb(handle, words, feeding)
            found, cycles, trouble = self.exchange_all(handle, words, marks, feeding)
            counters = {
                counter["name"]: self.counter(handle, counter["address"])
                for counter in self.manifest["counters"]
            }
        finally:
            self.destroy(handle)
            if fault:
                del os.environ[fault.variable]
        return Run(found, cycles, trouble, counters)

    def disturb(self, handle, words, feeding):
        """Leave the accelerator in the middle of its work, and reset it."""
        buffer, done = self.result.blank(ROOM), Done()
        self.exchange(
            handle, words.ctypes.data, len(words), buffer.ctypes.data, ROOM, feeding.before,
            None, None, ctypes.byref(done),
        )  # fmt: skip
        self.reset(handle)

    def sizes(self, feeding):
        """Yield words, room and cycles of one call after the other."""
        random = np.random.default_rng(feeding.seed)
        if not feeding.words:
            while True:
                yield 1 << 40, ROOM, 1 << 22
        limits = [feeding.words + 1, feeding.room + 1, feeding.cycles + 1]
        while True:
            yield from random.integers(0, limits, (SMALL, 3)).tolist()
            if feeding.leap:
                yield 1 << 40, ROOM, feeding.leap

    def exchange_all(self, handle, words, marks, feeding):
        """Offer all words, and take results until the last mark has come and nothing follows."""
        width = self.result.columns
        buffer, done = self.result.blank(ROOM), Done()
        kind = self.result.fields["kind"]
        mark = self.manifest["result_kinds"]["MARK"]
        mask = (1 << kind["bits"]) - 1
        column, shift = divmod(kind["offset"], 64)
        out, by = buffer.ctypes.data, ctypes.byref(done)
        row, base, stride = 0, words.ctypes.data, 8 * words.shape[1]
        found, seen, idle, cycles, patience = [], 0, 0, 0, self.patience(feeding)
        produced = 0
        for offered, room, limit in self.sizes(feeding):
            if seen == marks and row == len(words):
                break
            limit = min(limit, patience - idle + 1)
            count = min(offered, len(words) - row)
            self.exchange(
                handle, base + row * stride, count, out, min(room, ROOM), limit, None, None, by
            )
            row += done.accepted
            cycles += done.cycles
            idle = 0 if done.accepted or done.produced else idle + done.cycles
            if done.produced:
                found.append(buffer[: done.produced].copy())
                last = int(buffer[done.produced - 1, column]) >> shift
                seen += last & mask == mark
            produced += done.produced
            if produced > MOST_WORDS:
                text = f"sends {produced} result words, and no end comes"
                return self.joined(found[:1], width), cycles, text
            if idle > patience:
                text = f"stands still: {row} of {len(words)} words in, {seen} of {marks} marks out"
                return self.joined(found, width), cycles, text
        self.exchange(handle, base, 0, out, ROOM, QUIET, None, None, by)
        text = None
        if done.produced:
            found.append(buffer[: done.produced].copy())
            text = f"{done.produced} results came after the last mark"
        return self.joined(found, width), cycles, text

    @staticmethod
    def joined(found, width):
        """Return the parts of an array as one."""
        return np.concatenate([np.zeros((0, width), np.uint64), *found])
