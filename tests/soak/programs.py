# SPDX-License-Identifier: Apache-2.0
"""Random programs of input words for one accelerator, each from a generator of random numbers."""

from dataclasses import dataclass, field, replace
from random import Random

import numpy as np

from .machine import Feeding, Pace
from .operands import Operands, RandomMasks, RandomSegments
from .words import WordLayout, parameters_of
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


def random_pace(random, hidden):
    """Return a pace that an accelerator hides, or does not.

    Parameters
    ----------
    random : numpy.random.Generator
    hidden : int
        Latency that the accelerator was made for.
    """
    return Pace(
        latency=1 + int(random.integers(0, 2 * hidden + 20)),
        jitter=int(random.integers(0, 60)) * int(random.integers(2)),
        stalls=int(random.choice([0, 0, 10, 60, 128])),
    )


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
        self.parameters = parameters_of(manifest)
        self.storage = manifest["storage"]
        self.kinds = manifest["input_kinds"]
        self.turns = RandomSegments(manifest)
        self.masking = RandomMasks(manifest)
        self.operands = Operands(manifest, self.turns)
        self.effort = effort
        lanes, probes = self.storage["lanes"], self.parameters["probes"]
        at_once = lanes * probes if self.parameters["engine"] != "index" else 64
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
        self.masking.choose(single, facts)
        begin = self.operands.configuration(single) if random.random() < 0.9 else []
        groups = [
            self.between(random, single, len(tuples), facts),
            self.queries(random, single, len(tuples), facts),
            self.changes(random, single, len(tuples), facts),
            self.masks(random, single, len(tuples)),
        ]
        single.shuffle(groups)  # so any of them comes first where they meet
        places, controls = zip(*groups, strict=True)
        # What comes between two words is given the place of the second.
        words = np.insert(tuples, np.concatenate(places), np.concatenate(controls), axis=0)
        return Program(np.concatenate([self.layout.rows(begin), words]), feeding, facts)

    def between(self, random, single, count, facts):
        """Return places among some words, and a control word of any kind for each."""
        rate = choose(random, [0, 0, 0.001, 0.01, 0.1, 0.5])
        facts.append(("control words", f"one in {1 / rate:.0f} words" if rate else "at the begin"))
        places = np.flatnonzero(random.random(count) < rate)[:MOST_CONTROLS]
        some = self.layout.rows(
            self.operands.any_control(single) for _ in range(min(len(places), DIFFERENT_CONTROLS))
        )
        return places, some[random.integers(max(len(some), 1), size=len(places))]

    def queries(self, random, single, count, facts):
        """Return places among some words, and the control words of another query at some of them.

        So a long program shows as many queries as several short ones.
        """
        length = choose(random, [0, 0, 300, 2000])
        facts.append(("words of a query", f"about {length}" if length else "all"))
        begins = random.integers(0, count, min(count // length, MOST_QUERIES)) if length else []
        queries = [self.operands.configuration(single) for _ in begins]
        places = np.repeat(np.array(begins, np.int64), [len(query) for query in queries])
        return places, self.layout.rows(word for query in queries for word in query)

    def changes(self, random, single, count, facts):
        """Return places among some words, and the words of a new segment at some of them."""
        distance = self.turns.distance
        facts.append(("words of a segment", f"about {distance}" if distance else "all"))
        begins = random.integers(0, count, min(count // distance, MOST_QUERIES)) if distance else []
        return self.written(single, begins, [self.turns.segment(single) for _ in begins])

    def masks(self, random, single, count):
        """Return places among some words, and at each of them the words of a change of masks."""
        distance = self.masking.distance
        begins = random.integers(0, count, min(count // distance, MOST_QUERIES)) if distance else []

        def configuration():
            return self.operands.configuration(single, whole=True)

        changes = [self.masking.change(single, configuration) for _ in begins]
        return self.written(single, np.sort(begins), changes)

    def written(self, single, begins, changes):
        """Return the places of words, and the words: operations with their values, or numbers."""
        places = np.repeat(np.array(begins, np.int64), [len(change) for change in changes])
        return places, self.layout.rows(
            self.operands.control(word[0], single.randrange(2), word[1])
            if isinstance(word, tuple)
            else word
            for change in changes
            for word in change
        )

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
        if memory := self.manifest.get("memory"):
            feeding = replace(feeding, memory=random_pace(random, memory["latency"]))
            facts.append(("memory", "hidden" if feeding.memory.latency <= memory["latency"] else
                          "slow"))  # fmt: skip
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
