# SPDX-License-Identifier: Apache-2.0
"""Runs of the soak: shapes after shapes, programs after programs, until the time is up."""

from collections import Counter
from dataclasses import dataclass, field, replace
import time

import numpy as np

from sim.failures.bundles import built, faulty, manifest_of
from sim.failures.injection import VARIABLE, CoreFault, code_of

from .checking import Checker
from .machine import Fault
from .programs import Programmer
from .shapes import random_shape, shape_facts
from .words import listing

__all__ = ["Soak", "Tally", "random_fault", "soak"]

#: Seconds between two lines about the progress, and for making a program smaller.
BEAT_SECONDS = 5.0
SHRINK_SECONDS = 90.0
#: Results of a program, and which part of one tells how many are to come.
MOST_RESULTS = 200_000
SAMPLE = 8
#: Words of a program that is long enough for a sample.
LONG = 4000
#: Part of the programs in which a core fails, where cores can; cycles of a word, more or less.
FAILING = 0.7
CYCLES = 6
#: Words of a program that are printed.
LISTED = 60
#: What a core that fails can do.
FAULTS = list(CoreFault)


def random_fault(random, cores, cycles):
    """Return a core that fails in some way, at the latest after so many cycles, early as often."""
    core = int(random.integers(cores))
    kind = FAULTS[int(random.integers(len(FAULTS)))]
    cycle = int(cycles ** random.random())
    return Fault(core, f"{kind.name} from cycle {cycle}", VARIABLE, code_of(core, kind, cycle))


@dataclass
class Tally:
    """Running totals of a soak.

    Attributes
    ----------
    shapes, programs, tuples, pairs, cycles, differences : int
    facts : Counter
        How often each parameter, workload and control word occurred, by (name, value).
    """

    shapes: int = 0
    programs: int = 0
    tuples: int = 0
    pairs: int = 0
    cycles: int = 0
    differences: int = 0
    facts: Counter = field(default_factory=Counter)

    def line(self):
        """Return the counts as a line."""
        return (
            f"{self.shapes} shapes, {self.programs:,} programs, {self.tuples:,} tuples, "
            f"{self.pairs:,} pairs, {self.cycles:,} cycles, {self.differences} differences"
        )

    def coverage(self):
        """Return lines that tell how often everything occurred."""
        names = {}
        for (name, value), count in self.facts.items():
            names.setdefault(name, {})[value] = count
        for name, values in names.items():
            some = sorted(values.items(), key=lambda item: (isinstance(item[0], str), item[0]))
            yield f"{name}: " + ", ".join(f"{value} {count:,}" for value, count in some)


class Soak:
    """Soak test: random shapes and programs, all drawn from one seed.

    Parameters
    ----------
    seed : int
    report : callable
        Receives lines.
    effort : int
        Cycles that a program may take, more or less.
    """

    def __init__(self, seed, report, effort=1_000_000):
        self.seed, self.report, self.effort = seed, report, effort
        self.tally = Tally()
        self.failing = {}
        self.beat = time.monotonic()

    def shape(self, number):
        """Build a shape; return its parameters, manifest and :class:`Checker`."""
        parameters = random_shape(self.seed, number)
        self.report(f"shape {number}: {parameters}")
        fails = self.can_fail(number, parameters)
        bundle = (faulty if fails else built)(parameters, lambda text: None)
        manifest = manifest_of(bundle)
        self.failing[number] = fails
        self.tally.shapes += 1
        self.tally.facts.update(shape_facts(parameters))
        self.tally.facts["cores", "can fail" if fails else "never fail"] += 1
        return manifest, Checker(bundle / "splitjoin.so", manifest)

    def can_fail(self, number, parameters):
        """Return whether cores fail in some programs of a shape: in every other one with gates."""
        return parameters.has_gates and bool(np.random.default_rng([number, self.seed]).integers(2))

    def program(self, number, which, manifest, checker):
        """Return a program of a shape, shortened if more results were to come than are of use."""
        random = np.random.default_rng([self.seed, number, which])
        program = Programmer(manifest, self.effort).program(random)
        while len(program.words) > LONG:
            few = program.words[: len(program.words) // SAMPLE]
            if SAMPLE * checker.result_count(few) < 2 * MOST_RESULTS:
                break
            program.words = program.words[: len(program.words) // 2]
        while checker.result_count(program.words) > MOST_RESULTS:
            program.words = program.words[: len(program.words) // 2]
        if self.failing.get(number) and random.random() < FAILING:
            cycles = CYCLES * (len(program.words) + 1)
            fault = random_fault(random, manifest["storage"]["cores"], cycles)
            program.feeding = replace(program.feeding, fault=fault)
            program.facts.append(("fault", fault.kind.partition(" ")[0]))
        return program

    def case(self, number, which, manifest, checker):
        """Run one program of a shape; return whether it differs."""
        program = self.program(number, which, manifest, checker)
        outcome = checker.check(program.words, program.feeding)
        tally = self.tally
        tally.programs += 1
        tally.tuples += outcome.tuples
        tally.pairs += outcome.pairs
        tally.cycles += outcome.cycles
        tally.facts.update(program.facts + outcome.facts)
        for name, count in outcome.control_words.items():
            tally.facts["control word", name] += count
        if outcome.difference:
            tally.differences += 1
            self.tell(f"{number}.{which}", manifest, checker, program, outcome.difference)
        if time.monotonic() > self.beat + BEAT_SECONDS:
            self.beat = time.monotonic()
            self.report(tally.line())
        return outcome.difference is not None

    def tell(self, case, manifest, checker, program, text):
        """Print a difference, and the smallest program found that shows one."""
        self.report(f"DIFFERENCE in case {case}, {len(program.words)} words: {program.feeding}")
        self.report(text)
        self.report(f"replay: make soak SEED={self.seed} CASE={case}")
        end = time.monotonic() + SHRINK_SECONDS
        words, feeding = checker.shrunk(
            program.words, program.feeding, lambda: time.monotonic() > end
        )
        self.report(f"shrunk to {len(words)} words: {feeding}")
        for line in list(listing(manifest, words))[:LISTED]:
            self.report(f"    {line}")
        self.report(checker.check(words, feeding).difference)


def soak(seed, *, seconds, shapes, report, worst=3):
    """Soak for some time; return the :class:`Tally`.

    Parameters
    ----------
    seed : int
    seconds : float
    shapes : int
        How many accelerators share the time.
    report : callable
        Receives lines.
    worst : int
        Differences of a shape after which the next one's turn comes.
    """
    run, end = Soak(seed, report), time.monotonic() + seconds
    for number in range(shapes):
        if time.monotonic() > end:
            break
        manifest, checker = run.shape(number)
        until = time.monotonic() + (end - time.monotonic()) / (shapes - number)
        which, wrong = 0, 0
        while (not which or time.monotonic() < until) and wrong < worst:
            wrong += run.case(number, which, manifest, checker)
            which += 1
    return run.tally
