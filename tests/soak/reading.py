# SPDX-License-Identifier: Apache-2.0
"""What a program says, by ``docs/architecture.md``, section 2: tuples, control words, faults.

Moments are as in :mod:`tests.soak.model`. No tuple has the moment of a control word.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .words import as_numbers, parameters_of

__all__ = ["Controls", "Faults", "Tuples", "Windows", "read_controls"]

R, S = 0, 1
NEVER = 1 << 62
#: Period of a precision without stars.
NO_STARS = 1 << 61


class Tuples:
    """The tuples of a program in their order: ``moment``, ``side``, ``keys``, ``time``."""

    def __init__(self, layout, manifest, words):
        names = [f"key.{key['name']}" for key in parameters_of(manifest)["keys"]]
        kinds = manifest["input_kinds"]
        kind = layout.get(words, "kind")
        parts = [self.part(layout, words, np.flatnonzero(kind == kinds[name]), side, "", names)
                 for side, name in enumerate("RS")]  # fmt: skip
        if "BOTH" in kinds:
            places = np.flatnonzero(kind == kinds["BOTH"])
            first = layout.get(words[places], "first").astype(np.int64)
            for side, prefix in enumerate(("both.r.", "both.s.")):
                part = self.part(layout, words, places, side, prefix, names)
                part[0] += first != side
                parts.append(part)
        moment = np.concatenate([part[0] for part in parts])
        order = np.argsort(moment, kind="stable")
        columns = [np.concatenate(column)[order] for column in zip(*parts, strict=True)]
        self.moment, self.side, self.time, *self.keys = columns

    def keep(self, chosen):
        """Leave out all tuples but the chosen ones."""
        columns = (self.moment, self.side, self.time, *self.keys)
        self.moment, self.side, self.time, *self.keys = (column[chosen] for column in columns)

    @staticmethod
    def part(layout, words, places, side, prefix, names):
        """Return the columns of the tuples of one side in the words at ``places``."""
        chosen = words[places]
        return [
            2 * places.astype(np.int64),
            np.full(len(places), side),
            layout.get(chosen, f"{prefix}timestamp"),
            *(layout.get_ordered(chosen, prefix + name) for name in names),
        ]


@dataclass(frozen=True)
class Windows:
    """The windows of one side, each from its empty beginning to that of the next.

    Parameters
    ----------
    begin : int64 array
        Moments from which on they store.
    timed : bool array
        Whether ``size`` is a lifespan; else it is a number of tuples.
    size : int64 array
    distinct : bool array
        Whether the keys have been declared distinct.
    """

    begin: np.ndarray
    timed: np.ndarray
    size: np.ndarray
    distinct: np.ndarray

    def at(self, moments):
        """Return the number of the window at each of some moments."""
        return np.searchsorted(self.begin, moments) - 1


def round_size(storage, value):
    """Return how many tuples of a core are a round after INNER with a value; 0 for no rounds."""
    longest, size = storage["ring_rows"] * storage["lanes"] // 4, 1
    if not value:
        return 0
    while size < longest and value % (2 * size) == 0:
        size *= 2
    return size


class Controls:
    """The legal control words of a program, in their effects.

    Attributes
    ----------
    illegal : list of int
        Moments of illegal words.
    turns : list of (int, str, int)
        Moment, operation and value of CORE and SEGMENT words. Whether they are legal depends on the
        tuples (:func:`tests.soak.storage.read_turns`).
    masks : list of (int, int, bool)
        Moment and core of MASK and UNMASK words, and whether the core is masked from then on.
    counts : Counter
        Legal words of each operation.
    marks, closings, clears : list of int
        Moments of words that answer a mark, close groups, empty everything.
    precisions, rounds, bounds, hashes : list of (int, value)
        From when on which precision, size of rounds, bounds of all fields, or hashed fields hold.
    lives : list of two lists
        For each side, from when on a window stores, and the values of :class:`Windows`.
    """

    def __init__(self, manifest, capacity):
        parameters = parameters_of(manifest)
        self.capacity = capacity
        self.bits = [key["bits"] for key in parameters["keys"]]
        self.longest = (1 << parameters["timestamp_bits"]) - 1
        self.period = 1 << parameters["probe_bits"]
        self.probes = parameters["probes"]
        self.emptied_by = manifest.get("chain", {"emptied_by": ()})["emptied_by"]
        self.coordinate = manifest.get("index", {}).get("coordinate")
        open_bounds = tuple((-(1 << bits), (1 << bits) - 1) for bits in self.bits)
        self.illegal, self.marks, self.closings, self.clears = [], [], [], []
        self.turns, self.masks = [], []
        self.counts = Counter()
        self.storage = manifest["storage"]
        self.precisions, self.rounds = [(-1, 1)], [(-1, 0)]
        self.bounds = [(-1, open_bounds)]
        self.hashes = [(-1, (False,) * len(self.bits))]
        self.lives = [[(-1, False, capacity, False)] for _ in range(2)]

    def execute(self, moment, op, index, value):
        """Take one legal control word."""
        if op in ("CORE", "SEGMENT"):
            self.turns.append((moment, op, value))
            return
        self.counts[op] += 1
        if op in ("CLEAR", "FLUSH", "PRECISION", "INNER"):
            self.marks.append(moment)
        nothing = op in ("MASK", "UNMASK") and not 0 <= value < self.storage["cores"]
        if op not in ("BOUND_LOW", "BOUND_HIGH") and not nothing:
            self.closings.append(moment)
        getattr(self, f"on_{op.lower()}")(moment, index, value)
        if op in self.emptied_by:
            for side in (0, 1):
                self.renew(moment, side)

    def renew(self, moment, side, timed=None, size=None, distinct=None):
        """Begin a new window of a side; what is None stays as it was."""
        new = timed, size, distinct
        old = self.lives[side][-1][1:]
        kept = (was if now is None else now for now, was in zip(new, old, strict=True))
        self.lives[side].append((moment, *kept))

    def on_clear(self, moment, index, value):
        """CLEAR."""
        self.clears.append(moment)
        for side in (0, 1):
            self.renew(moment, side)

    def on_flush(self, moment, index, value):
        """FLUSH: it closes groups, as others do."""

    def bound(self, moment, index, end, value):
        """Set one bound of a field."""
        limit = 1 << self.bits[index]
        bounds = [list(both) for both in self.bounds[-1][1]]
        bounds[index][end] = min(max(value, -limit), limit - 1)
        self.bounds.append((moment, tuple(map(tuple, bounds))))

    def on_bound_low(self, moment, index, value):
        """BOUND_LOW."""
        self.bound(moment, index, 0, value)

    def on_bound_high(self, moment, index, value):
        """BOUND_HIGH."""
        self.bound(moment, index, 1, value)

    def on_window(self, moment, index, value):
        """WINDOW."""
        self.renew(moment, index, timed=False, size=min(max(value, 1), self.capacity))

    def on_lifespan(self, moment, index, value):
        """LIFESPAN."""
        self.renew(moment, index, timed=True, size=min(max(value, 0), self.longest))

    def on_precision(self, moment, index, value):
        """PRECISION."""
        period = value if 1 <= value <= self.period else self.period if value else NO_STARS
        self.precisions.append((moment, period))
        self.rounds.append((moment, 0))

    def on_inner(self, moment, index, value):
        """INNER."""
        self.precisions.append((moment, 1))
        self.rounds.append((moment, round_size(self.storage, value)))

    def on_coordinate(self, moment, index, value):
        """COORDINATE: of its part, only whether it is hashed can change an answer."""
        part = self.coordinate["fields"]["hashed"]
        sure = 0 <= value < 1 << self.coordinate["bits"]
        hashed = not sure or bool(part["bits"] and value >> part["offset"] & 1)
        fields = list(self.hashes[-1][1])
        fields[index] = hashed
        self.hashes.append((moment, tuple(fields)))
        for side in (0, 1):
            self.renew(moment, side)

    def on_mask(self, moment, index, value):
        """MASK."""
        self.masks.append((moment, value, True))

    def on_unmask(self, moment, index, value):
        """UNMASK."""
        self.masks.append((moment, value, False))

    def on_cell(self, moment, index, value):
        """CELL: it changes no answer, but it empties both windows."""
        for side in (0, 1):
            self.renew(moment, side)

    def on_distinct(self, moment, index, value):
        """DISTINCT."""
        for side in (0, 1):
            self.renew(moment, side, distinct=bool(value & 1) if side == index else None)

    def windows(self, side):
        """Return the :class:`Windows` of a side."""
        return Windows(*map(np.array, zip(*self.lives[side], strict=True)))

    def free(self):
        """Tell of every mark whether the order of the results before it is free."""
        return values_at(self.precisions, self.marks) > self.probes

    def periods(self, moments):
        """Return the precision at each of some moments."""
        return values_at(self.precisions, moments)

    def bounds_at(self, moments):
        """Return all bounds that were ever in force, and the number of those at each moment."""
        return [bounds for _, bounds in self.bounds], versions(self.bounds, moments)

    def misled(self, moments):
        """Tell of each moment whether a field is hashed whose bounds differ."""
        unequal = [(begin, [low != high for low, high in bounds]) for begin, bounds in self.bounds]
        return (values_at(self.hashes, moments) & values_at(unequal, moments)).any(axis=1)


def versions(changes, moments):
    """Return the number of the last change before each moment."""
    return np.searchsorted([begin for begin, _ in changes], moments) - 1


def values_at(changes, moments):
    """Return the value, or the row of values, that holds at each moment."""
    return np.array([value for _, value in changes])[versions(changes, moments)]


def read_controls(manifest, layout, words, capacity):
    """Return the :class:`Controls` of a program."""
    controls = Controls(manifest, capacity)
    kinds = manifest["input_kinds"]
    kind = layout.get(words, "kind")
    tuples = [kinds[name] for name in ("R", "S", "BOTH") if name in kinds]
    names = {code: name for name, code in manifest["operations"].items()}
    places = np.flatnonzero(~np.isin(kind, tuples))
    columns = [layout.get(words[places], f"control.{name}").tolist() for name in ("op", "index")]
    known = (kind[places] == kinds["CONTROL"]).tolist()
    numbers = as_numbers(words[places])
    for place, is_control, code, index, number in zip(
        places.tolist(), known, *columns, numbers, strict=True
    ):
        op = names.get(code) if is_control else None
        if op is not None and index < manifest["indices"][op]:
            controls.execute(2 * place, op, index, layout.value(number, "control.value"))
        else:
            controls.illegal.append(2 * place)
    return controls


class Faults:
    """The moments of the first faults since each CLEAR.

    An *era* is what lies between two CLEAR words. The mark of a CLEAR belongs to the era that it
    ends.

    Parameters
    ----------
    controls : tests.soak.reading.Controls

    Attributes
    ----------
    overflow : list of two int64 arrays
        For each side and era, the moment of the first tuple that found no room.
    disorder, illegal : int64 arrays
        For each era, the moments of the first tuple out of order and of the first illegal word.
    told : list of two pairs of int64 arrays, or None
        For each side, when cores begin and end to tell of an overflow; if it is None, they do from
        an overflow to the end of its era.
    """

    def __init__(self, controls):
        self.clears = np.array(controls.clears, np.int64)
        never = np.full(len(self.clears) + 1, NEVER)
        self.overflow = [never.copy(), never.copy()]
        self.disorder, self.illegal = never.copy(), never
        self.told = [None, None]
        self.note(self.illegal, np.array(controls.illegal, np.int64))

    def era(self, moments):
        """Return the number of CLEAR words before each moment."""
        return np.searchsorted(self.clears, moments)

    def note(self, first, moments):
        """Note faults of a kind, given by its array."""
        np.minimum.at(first, self.era(moments), moments)

    def note_overflows(self, side, moments, cores, masks):
        """Note tuples that find no room in their cores; a core tells of it until it is masked."""
        self.note(self.overflow[side], moments)
        begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for core in np.unique(cores):
            borders = np.union1d(self.clears, masks.changes(core))
            mine = moments[cores == core]
            interval, first = np.unique(np.searchsorted(borders, mine), return_index=True)
            begins.append(mine[first])
            ends.append(np.append(borders, NEVER)[interval])
        self.told[side] = np.sort(np.concatenate(begins)), np.sort(np.concatenate(ends))

    def tells(self, side, moments):
        """Tell whether an overflow of a side is told at each moment."""
        if self.told[side] is None:
            return self.since(self.overflow[side], moments)
        begun, ended = (np.searchsorted(border, moments) for border in self.told[side])
        return begun > ended

    def since(self, first, moments):
        """Tell which moments come after a fault of their era."""
        return first[self.era(moments)] < moments

    def before(self, moments):
        """Return the faults before each moment: overflow by side, disorder, illegal, as numbers."""
        over_r, over_s = (self.tells(side, moments).astype(np.int64) for side in (R, S))
        disorder, illegal = (
            self.since(first, moments).astype(np.int64) for first in (self.disorder, self.illegal)
        )
        return over_r | over_s << S, disorder, illegal
