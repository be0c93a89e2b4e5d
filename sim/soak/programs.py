# SPDX-License-Identifier: Apache-2.0
"""Random programs of input words for one accelerator, each from a generator of random numbers."""

from dataclasses import dataclass, field
from random import Random

import numpy as np

from .machine import Feeding
from .segments import Turns
from .words import WordLayout
from .workloads import KEYS, SIDES, TIMES, column, sides, times

__all__ = ["Program", "Programmer"]

#: Cycles, more or less, of programs that may be withheld nine words in ten, and of those that may
#: be fed with nothing but small calls.
SHORT, TINY = 10_000, 1_000
#: Control words among the tuples of a program, and how many of them are made; others repeat those.
MOST_CONTROLS = 1500
DIFFERENT_CONTROLS = 300
#: Queries of a program besides the first one.
MOST_QUERIES = 100


def choose(random, values):
    """Return one of some values, as Python has it."""
    return values[int(random.integers(len(values)))]


@dataclass
class Program:
    """Input words, the way to feed them, and what coverage counts of them."""

    words: np.ndarray
    feeding: Feeding
    facts: list = field(default_factory=list)


class Programmer:
    """Writes programs for the accelerator of a manifest.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    effort : int
        Cycles, more or less, that a long program may take.
    """

    def __init__(self, manifest, effort):
        self.manifest = manifest
        self.layout = WordLayout(manifest["input_word"])
        self.parameters = manifest["parameters"]
        self.storage = manifest["storage"]
        self.kinds = manifest["input_kinds"]
        self.operations = sorted(manifest["operations"])
        self.capacity = self.storage["cores"] * self.storage["sub_window"]
        self.turns = Turns(manifest)
        self.effort = effort
        lanes, probes = self.storage["lanes"], self.parameters["probes"]
        at_once = lanes * probes if self.parameters["engine"] == "scan" else 64
        #: Cycles that a tuple takes, more or less.
        self.cost = 2 + self.storage["sub_window"] / at_once

    def program(self, random):
        """Return one random :class:`Program`."""
        facts = []
        count = self.tuple_count(random)
        feeding = self.feeding(random, count, facts)
        tuples = self.tuples(random, count, facts)
        # Control words are made one by one, which Python's own generator does faster.
        single = Random(random.bytes(8))
        self.turns.choose(single, facts)
        begin = self.configuration(single, count) if random.random() < 0.9 else []
        places, controls = zip(
            self.between(random, single, len(tuples), facts),
            self.queries(random, single, len(tuples), facts),
            self.changes(random, single, len(tuples), facts),
            strict=True,
        )
        # What comes between two words is given the place of the second.
        words = np.insert(tuples, np.concatenate(places), np.concatenate(controls), axis=0)
        return Program(np.concatenate([self.layout.rows(begin), words]), feeding, facts)

    def between(self, random, single, count, facts):
        """Return places among some words, and a control word of any kind for each."""
        rate = choose(random, [0, 0, 0.001, 0.01, 0.1, 0.5])
        facts.append(("control words", f"one in {1 / rate:.0f} words" if rate else "at the begin"))
        places = np.flatnonzero(random.random(count) < rate)[:MOST_CONTROLS]
        some = self.layout.rows(
            self.any_control(single, count) for _ in range(min(len(places), DIFFERENT_CONTROLS))
        )
        return places, some[random.integers(max(len(some), 1), size=len(places))]

    def queries(self, random, single, count, facts):
        """Return places among some words, and the control words of another query at some of them.

        So a long program shows as many queries as several short ones.
        """
        length = choose(random, [0, 0, 300, 2000])
        facts.append(("words of a query", f"about {length}" if length else "all"))
        begins = random.integers(0, count, min(count // length, MOST_QUERIES)) if length else []
        queries = [self.configuration(single, count) for _ in begins]
        places = np.repeat(np.array(begins, np.int64), [len(query) for query in queries])
        return places, self.layout.rows(word for query in queries for word in query)

    def changes(self, random, single, count, facts):
        """Return places among some words, and the words of a new segment at some of them."""
        distance = self.turns.distance
        facts.append(("words of a segment", f"about {distance}" if distance else "all"))
        begins = random.integers(0, count, min(count // distance, MOST_QUERIES)) if distance else []
        changes = [self.turns.segment(single) for _ in begins]
        places = np.repeat(np.array(begins, np.int64), [len(change) for change in changes])
        words = (self.control(op, single.randrange(2), n) for change in changes for op, n in change)
        return places, self.layout.rows(words)

    def tuple_count(self, random):
        """Return how many tuples a program has: few as often as many, as many as time allows."""
        most = max(100, self.effort / self.cost / (1 + self.storage["cores"] / 4))
        return int(most ** random.uniform(0.2, 1.0))

    def feeding(self, random, count, facts):
        """Return a random :class:`Feeding`.

        Words withheld nine times in ten, and calls of a few cycles, take long for what they show.
        So only short programs see the former, and only tiny ones nothing but the latter.
        """
        work = count * self.cost
        stalls = [0, 0, 0, 10, 60, 128] + [200, 240] * (work < SHORT)
        size = {}
        way = choose(random, ["whole", "whole", "pieces", "crumbs"])
        if way == "pieces":
            size = {"words": choose(random, [30, 300, 3000]), "room": choose(random, [20, 500]),
                    "cycles": choose(random, [100, 1000])}  # fmt: skip
        elif way == "crumbs":
            size = {"words": choose(random, [1, 2, 5]), "room": choose(random, [1, 2, 3]),
                    "cycles": choose(random, [1, 3, 20])}  # fmt: skip
        if size and work > TINY:
            size["leap"] = int(work / random.uniform(5, 20))
        feeding = Feeding(
            seed=int(random.integers(1 << 31)), stall_in=choose(random, stalls),
            stall_out=choose(random, stalls), **size,
            before=0 if random.random() < 0.7 else int(random.integers(1, 3000)),
        )  # fmt: skip
        facts.append(("fed", f"{way} and leaps" if feeding.leap else way))
        facts += [("stalls in", feeding.stall_in), ("stalls out", feeding.stall_out)]
        facts.append(("reset", "in the middle" if feeding.before else "at the begin"))
        return feeding

    def tuples(self, random, count, facts):
        """Return words with tuples, in the order of their time but for rare exceptions."""
        who = choose(random, sorted(SIDES))
        side = sides(random, who, count)
        facts.append(("sides", who))
        keys = {}
        name = choose(random, sorted(KEYS))
        for spec in self.parameters["keys"]:
            if random.random() < 0.4:
                name = choose(random, sorted(KEYS))
            keys[f"key.{spec['name']}"] = column(random, name, spec["bits"], count)
            facts.append(("keys", name))
        bits = self.parameters["timestamp_bits"]
        if bits:
            pace = choose(random, sorted(TIMES))
            keys["timestamp"] = times(random, pace, bits, count)
            facts.append(("time", pace))
            if random.random() < 0.15 and count:
                wrong = random.integers(0, count, 1 + int(random.integers(3)))
                keys["timestamp"][wrong] //= np.uint64(2)
                facts.append(("time", "goes back"))
        return self.packed(random, side, keys, facts)

    def packed(self, random, side, keys, facts):
        """Return the words of tuples; some neighbours share one, where words can hold two.

        Bits that mean nothing in a word are random.
        """
        first = np.zeros(len(side), bool)
        share = 0.0
        if "BOTH" in self.kinds:
            share = choose(random, [0.0, 0.5, 1.0, 1.0])
            facts.append(("two in a word", f"{share:.0%}"))
            able = (side[:-1] != side[1:]) & (random.random(max(len(side) - 1, 0)) < share)
            # Of neighbours in a row that may all share a word with the next, every other one does.
            place = np.arange(len(able))
            row_begin = np.maximum.accumulate(np.where(able, 0, place + 1))
            first[:-1] = able & ((place - row_begin) % 2 == 0)
        second = np.roll(first, 1)
        words = self.layout.blank(len(side))
        alone = ~first & ~second
        part = self.layout.noise(random, int(alone.sum()), ["kind", *keys])
        kind = np.where(side == 0, self.kinds["R"], self.kinds["S"])
        self.layout.put(part, "kind", kind[alone])
        for name, values in keys.items():
            self.layout.put(part, name, values[alone])
        words[alone] = part
        if first.any():
            at = np.flatnonzero(first)
            own = [prefix + name for prefix in ("both.r.", "both.s.") for name in keys]
            part = self.layout.noise(random, len(at), ["kind", "first", *own])
            self.layout.put(part, "kind", np.full(len(at), self.kinds["BOTH"]))
            self.layout.put(part, "first", side[at])
            for number, prefix in enumerate(("both.r.", "both.s.")):
                mine = np.where(side[at] == number, at, at + 1)
                for name, values in keys.items():
                    self.layout.put(part, prefix + name, values[mine])
            words[at] = part
        return words[~second]

    # ---- control words

    def control(self, op, index=0, value=0):
        """Return one control word, as an integer."""
        return self.layout.number(
            kind=self.kinds["CONTROL"], control_op=self.manifest["operations"].get(op, op),
            control_index=index, control_value=value,
        )  # fmt: skip

    def bound_pair(self, random, bits):
        """Return random bounds of a field: equal, shifted, narrow, one-sided, empty, absurd."""
        half, top = 1 << max(bits - 1, 0), 1 << bits
        narrow = random.randrange(1, 20)
        shift = random.randrange(-12, 13)
        return random.choice([
            (0, 0), (0, 0), (shift, shift), (-narrow, narrow), (-narrow, narrow), (0, narrow),
            (-top, top - 1), (-top, -1), (1, top - 1), (narrow, -narrow), (-half, half),
            (-top - 5, top + 5), (-3 * top, -top), (top - 2, top - 1), (-top, 1 - top),
        ])  # fmt: skip

    def coordinate(self, random, bounds=None):
        """Return a random part of a field in the bucket; with bounds, one that suits them."""
        layout = self.manifest["index"]["coordinate"]
        buckets = self.manifest["index"]["bucket_bits"]
        value = 0
        hashed = int(bounds[0] == bounds[1]) if bounds else random.randrange(2)
        for name, number in [
            ("shift", random.randrange(0, 8)), ("width", random.randrange(0, buckets + 1)),
            ("place", random.randrange(0, buckets + 1)), ("hashed", hashed),
            ("seed", random.randrange(1 << 32)),
        ]:  # fmt: skip
            part = layout["fields"][name]
            value |= (int(number) & ((1 << part["bits"]) - 1)) << part["offset"]
        return value

    def cell(self, random, bounds=None):
        """Return random cells of a part of the digests; with bounds, often wide enough for them."""
        layout = self.manifest["digests"]["cell"]
        field = random.randrange(len(self.parameters["keys"]))
        shift = random.randrange(0, 8)
        if bounds:
            low, high = bounds[field]
            enough = max(high - low - 1, 0).bit_length()
            shift = random.choice([enough, enough, max(enough - 1, 0), shift])
        value = 0
        for name, number in (("field", field), ("shift", shift)):
            part = layout["fields"][name]
            value |= (number & ((1 << part["bits"]) - 1)) << part["offset"]
        return value

    def window(self, random, side, count):
        """Return a word that gives a side a new window, sometimes of an absurd size."""
        bits = self.parameters["timestamp_bits"]
        if bits and random.random() < 0.6:
            size = random.choice([
                0, 1, random.randrange(0, 30), self.turns.room // 2, self.turns.room,
                random.randrange(0, 4 * self.capacity), 1 << bits, -1,
            ])  # fmt: skip
            return self.control("LIFESPAN", side, size)
        room = self.turns.room
        size = random.choice([
            1, 2, room, room, random.randrange(1, room + 1), random.randrange(1, room + 1), 0, -7,
            self.capacity + 1,
        ])  # fmt: skip
        return self.control("WINDOW", side, size)

    def period(self, random):
        """Return a random precision."""
        probes, most = self.parameters["probes"], 1 << self.parameters["probe_bits"]
        return random.choice([
            1, 1, probes, probes, random.randrange(1, probes + 1), probes + 1,
            random.randrange(1, most + 1), most, most + 1, 0, -1,
        ])  # fmt: skip

    def rounds(self, random):
        """Return a random number of tuples in a round."""
        return random.choice([1, 1, 1, 2, 3, 4, 6, 8, 16, 40, 0, -1, -4, random.randrange(1, 64)])

    def configuration(self, random, count):
        """Return words that set up a query, each of them with some probability."""
        words, bounds, ops = [], {}, self.manifest["operations"]
        for index, spec in enumerate(self.parameters["keys"]):
            bounds[index] = self.bound_pair(random, spec["bits"])
            for op, value in zip(("BOUND_LOW", "BOUND_HIGH"), bounds[index], strict=True):
                if op in ops:
                    words.append(self.control(op, index, value))
        if "COORDINATE" in ops and random.random() < 0.8:
            for index, limits in bounds.items():
                words.append(self.control("COORDINATE", index, self.coordinate(random, limits)))
        if "CELL" in ops and random.random() < 0.8:
            for index in range(self.manifest["indices"]["CELL"]):
                words.append(self.control("CELL", index, self.cell(random, bounds)))
        if "DISTINCT" in ops and random.random() < 0.2:
            words.append(self.control("DISTINCT", random.randrange(2), 1))
        words += [self.window(random, side, count) for side in (0, 1) if random.random() < 0.8]
        if random.random() < 0.8:
            words.append(self.control("PRECISION", 0, self.period(random)))
        if "INNER" in ops and random.random() < 0.6:
            words.append(self.control("INNER", 0, self.rounds(random)))
        if random.random() < 0.5:
            words.append(self.control("CLEAR"))
        return words

    def any_control(self, random, count):
        """Return a word that is no tuple: of any operation, undefined ones too, or of no kind."""
        choice = random.random()
        if choice < 0.06:
            return self.garbage(random)
        if choice < 0.12:
            return self.control(random.randrange(16), random.randrange(16), random.randrange(-9, 9))
        op, side = random.choice(self.operations), random.randrange(2)
        if op in ("CORE", "SEGMENT"):
            return self.control(op, random.randrange(16), self.turns.core(random))
        index = random.randrange(self.manifest["indices"][op])
        value = random.randrange(-3, 4)
        if op in ("BOUND_LOW", "BOUND_HIGH"):
            value = random.choice(self.bound_pair(random, self.parameters["keys"][index]["bits"]))
        elif op in ("WINDOW", "LIFESPAN"):
            return self.window(random, side, count)
        elif op == "PRECISION":
            value = self.period(random)
        elif op == "INNER":
            value = self.rounds(random)
        elif op == "COORDINATE":
            value = self.coordinate(random)
        elif op == "CELL":
            value = self.cell(random)
        return self.control(op, index, value)

    def garbage(self, random):
        """Return a word of random bits that is no tuple, if there is a kind for that."""
        number = random.getrandbits(self.layout.bits)
        kind = self.layout.fields["kind"]
        mask = ((1 << kind["bits"]) - 1) << kind["offset"]
        free = set(range(4)) - set(self.kinds.values()) | {self.kinds["CONTROL"]}
        return number & ~mask | random.choice(sorted(free)) << kind["offset"]
