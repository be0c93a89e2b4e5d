# SPDX-License-Identifier: Apache-2.0
"""Results as arrays: the side of each, and a code that holds all else that is fixed of it.

The order of results and stars, by several keys, is here as well.
"""

from dataclasses import dataclass

import numpy as np

from .words import WordLayout

__all__ = [
    "FAILED",
    "FAILED_CORE",
    "INNER",
    "KIND",
    "MARK",
    "MATCH",
    "OVERFLOW",
    "PAIR",
    "STAR",
    "VALUE",
    "Results",
    "describe",
    "order_of",
    "pack",
    "pack_match",
    "pack_pair",
    "pack_value",
    "read_results",
]

#: A MATCH is a pair of a chain of cores, which names both tuples by their numbers.
PAIR, STAR, MARK, MATCH = 0, 1, 2, 3
#: A star that ends a round.
INNER = 4
#: What the matches of a tuple of R are reduced to, by a join aggregate.
VALUE = 5
#: Where the parts of a code begin. Codes of a group's pairs are ordered by their cores.
KIND, CORE, ROW, LANE = 60, 44, 24, 16
#: Where they begin in the code of a star or mark, above ``illegal`` and ``disorder``.
OVERFLOW, FAILED, FAILED_CORE = 2, 4, 8
#: Bits of a tuple's number in the code of a MATCH.
ORDINAL = 30


def pack_pair(core, row, lane, probe):
    """Return the codes of pairs."""
    return core << CORE | row << ROW | lane << LANE | probe


def pack_match(r, s):
    """Return the codes of pairs of a chain."""
    return MATCH << KIND | r << ORDINAL | s


def pack_value(probe, parts):
    """Return the codes of values: the number of the probe below a digest of all that was reduced.

    Parameters
    ----------
    probe : int64 array
    parts : iterable of (int64 array, int)
        What was reduced, as signed or unsigned numbers, and the bits of each in a result.
    """
    digest = np.zeros(len(probe), np.uint64)
    for part, bits in parts:
        low = part.astype(np.uint64) & np.uint64((1 << bits) - 1)
        digest = (digest ^ low) * np.uint64(0x9E3779B97F4A7C15)
        digest ^= digest >> np.uint64(29)
    return VALUE << KIND | (digest >> np.uint64(64 - KIND + 16)).astype(np.int64) << 16 | probe


def pack(kind, overflow, disorder, illegal):
    """Return the codes of stars or marks with their faults."""
    return kind << KIND | overflow << OVERFLOW | disorder << 1 | illegal


@dataclass(frozen=True)
class Results:
    """Results in their order.

    Parameters
    ----------
    side : int64 array
        The probe's; 0 of a mark.
    code : int64 array
        From :func:`pack_pair` or :func:`pack`.
    """

    side: np.ndarray
    code: np.ndarray

    def __len__(self):
        return len(self.code)

    def __getitem__(self, chosen):
        return Results(self.side[chosen], self.code[chosen])

    @property
    def kind(self):
        """PAIR, STAR, MARK, MATCH, INNER or VALUE of each."""
        return self.code >> KIND

    @property
    def is_pair(self):
        """Whether each is a pair, of whichever architecture, or a value in its place."""
        return np.isin(self.kind, (PAIR, MATCH, VALUE))

    @property
    def core(self):
        """Core of each pair."""
        return (self.code >> CORE) & 0xFFFF

    def marks_before(self):
        """Return how many marks came before each."""
        mark = self.kind == MARK
        return np.cumsum(mark) - mark

    def stars_before(self):
        """Return how many stars came before each, of any side."""
        star = self.kind == STAR
        return np.cumsum(star) - star

    def own_stars_before(self):
        """Return how many stars of its own side came before each."""
        star = self.kind == STAR
        count = np.zeros(len(self), np.int64)
        for side in (0, 1):
            mine = star & (self.side == side)
            count = np.where(self.side == side, np.cumsum(mine) - mine, count)
        return count

    def probes(self):
        """Return an identity of each pair's probe, or round's; -1 for other results.

        Where there are rounds, every probe has a star, so its index is zero.
        """
        probe = np.where(np.isin(self.kind, (PAIR, VALUE)), self.code & 0xFFFF, 0)
        of_probe = np.isin(self.kind, (PAIR, INNER, VALUE))
        return np.where(of_probe, identity(self.side, self.own_stars_before(), probe), -1)


def identity(side, stars, probe):
    """Return a number for a probe: its side, stars of that side before it, and its index."""
    return side << 62 | stars << 20 | probe


def describe(side, code):
    """Return a result as text."""
    name, kind = "RS"[side], code >> KIND
    if kind == PAIR:
        core, row = (code >> CORE) & 0xFFFF, (code >> ROW) & 0xFFFFF
        return f"PAIR {name} probe={code & 0xFFFF} core={core} row={row} lane={code >> LANE & 255}"
    if kind == MATCH:
        every = (1 << ORDINAL) - 1
        return f"PAIR r={code >> ORDINAL & every} s={code & every}"
    if kind == VALUE:
        return f"VALUE {name} probe={code & 0xFFFF} digest={code >> 16 & (1 << KIND - 16) - 1:#x}"
    if kind == INNER:
        return f"STAR {name} of a round" + (" with faults" if code != INNER << KIND else "")
    faults = f"overflow={code >> OVERFLOW & 3} disorder={code >> 1 & 1} illegal={code & 1}"
    if code >> FAILED & 1:
        faults += f" failed={code >> FAILED_CORE & 0xFFFF}"
    return f"STAR {name} {faults}" if kind == STAR else f"MARK {faults}"


class Reader:
    """Decodes result words by the manifest."""

    def __init__(self, manifest):
        self.layout = WordLayout(manifest["result_word"])
        self.kinds = manifest["result_kinds"]
        self.gather = manifest["storage"]["gather"]
        self.is_chain = "chain" in manifest
        self.datum = "VALUE" if "VALUE" in self.kinds else "PAIR"
        self.places = ["", "two."] if "two.kind" in self.layout.fields else [""]

    def core(self, digits):
        """Return the numbers of cores from their mixed-radix digits."""
        arity, bits = self.gather["arity"], self.gather["digit_bits"]
        core = np.zeros(len(digits), np.int64)
        for level in range(self.gather["levels"]):
            core += (digits >> (level * bits) & ((1 << bits) - 1)) * arity**level
        return core

    def pair(self, get):
        """Return the codes of words as those of pairs; ``get`` returns a field of all words."""
        if self.is_chain:
            return pack_match(get("r"), get("s"))
        if self.datum == "VALUE":
            names = [f"value.{name}" for name in ("count", "total", "least", "most")]
            bits = [self.layout.fields[name]["bits"] for name in names]
            return pack_value(get("value.probe"), zip(map(get, names), bits, strict=True))
        return pack_pair(self.core(get("core")), get("row"), get("lane"), get("probe"))

    def place(self, words, prefix):
        """Return kind as the word has it, side and code of one place of every word."""

        def get(name):
            return self.layout.get(words, prefix + name).astype(np.int64)

        kind, faults = get("kind"), map(get, ("overflow", "disorder", "illegal"))
        pair, no_side = self.pair(get), self.is_chain
        side = get("side") if "side" in self.layout.fields else np.zeros_like(kind)
        is_mark = kind == self.kinds["MARK"]
        stop = np.where(is_mark, MARK, STAR)
        if "inner" in self.layout.fields:
            inner = get("inner") != 0
            # No mark has the flag: what has is neither a mark nor the star of a probe.
            stop = np.where(inner, np.where(is_mark, MATCH, INNER), stop)
        stops = pack(stop, *faults)
        if "failed" in self.layout.fields:
            failed = get("failed")
            stops |= failed << FAILED | failed * self.core(get("failed_core")) << FAILED_CORE
        code = np.where(kind == self.kinds[self.datum], pair, stops)
        return kind, np.where(is_mark | no_side, 0, side), code


def read_results(manifest, words):
    """Return the :class:`Results` of result words, and what is wrong with the words, or None."""
    reader = Reader(manifest)
    kinds, sides, codes = zip(*(reader.place(words, p) for p in reader.places), strict=True)
    known = [reader.kinds[name] for name in (reader.datum, "STAR", "MARK")]
    wrong = None
    if not np.isin(kinds[0], known).all():
        wrong = "the first place of a result word is empty"
    present = np.ones((len(words), len(kinds)), bool)
    if len(kinds) == 2:
        present[:, 1] = kinds[1] != reader.kinds["NONE"]
        marks = (kinds[0] == reader.kinds["MARK"]) | (kinds[1] == reader.kinds["MARK"])
        alone = (kinds[0] == reader.kinds["MARK"]) & ~present[:, 1]
        if (marks & ~alone).any():
            wrong = "a mark is not alone in its word"
    side, code = (np.stack(column, 1)[present] for column in (sides, codes))
    return Results(side, code), wrong


def order_of(*keys):
    """Return the stable order by the first key, then by the second one, and so on.

    Parameters
    ----------
    keys : int64 arrays
        Of numbers that are not negative.
    """
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    together, limit = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        size = int(key.max()) + 1
        limit *= size
        if limit >= 1 << 63:  # too much for one number
            return np.lexsort(keys[::-1])
        together = together * size + key
    return np.argsort(together, kind="stable")
