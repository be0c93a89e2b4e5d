# SPDX-License-Identifier: Apache-2.0
"""Results in rounds: what each core sends of them, and in which order they are gathered."""

from dataclasses import dataclass

from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind
from tests.hdl.gathering import punctuation

__all__ = ["Probe", "inner_star", "probes_in_rounds", "rounds_parameters"]


def rounds_parameters(cores, fan_in):
    """Parameters of a small accelerator with rounds."""
    return JoinParameters.of(cores=cores, fan_in=fan_in, sub_window=100, probe_bits=4, rounds=True)


def inner_star(number):
    """The star of a round."""
    flags = {"inner": 1}
    return {"kind": ResultKind.STAR, "round": number % 4, "body": {"punctuation": flags}}


@dataclass(frozen=True)
class Probe:
    """A probe that sees tuples ``start`` to ``end - 1`` of the other side.

    Tuple ``n`` is in core ``n % cores``, as that core's tuple ``n // cores``. A round is ``size``
    tuples of a core. Tuples of ``matches`` are found.
    """

    cores: int
    size: int
    start: int
    end: int
    matches: frozenset

    def local(self, n):
        """The number of a tuple within its core."""
        return n // self.cores

    @property
    def starred(self):
        """The rounds that have a star: any core has the last tuple of the round in the window."""
        lasts = (self.local(n) for n in range(self.start, self.end))
        return sorted({n // self.size for n in lasts if n % self.size == self.size - 1})

    def pair(self, n):
        """A pair as the region of the tuple's core emits it."""
        local = self.local(n)
        pair = {"row": local % 64}
        return {"kind": ResultKind.PAIR, "round": local // self.size % 4, "body": {"pair": pair}}

    def sent(self, core):
        """The words that a core sends."""
        words = []
        for n in range(self.start, self.end):
            if n % self.cores == core:
                words += [self.pair(n)] if n in self.matches else []
                if self.local(n) % self.size == self.size - 1:
                    words.append(inner_star(self.local(n) // self.size))
        return [*words, punctuation(ResultKind.STAR)]

    def aligned(self, core):
        """The words of a core with a star for every round that has one."""
        words, stars = [], self.starred
        for n in sorted(n for n in self.matches if n % self.cores == core):
            while stars and stars[0] < self.local(n) // self.size:
                words.append(inner_star(stars.pop(0)))
            words.append(self.pair(n))
        return [*words, *map(inner_star, stars), punctuation(ResultKind.STAR)]

    def gathered(self):
        """Numbers of the matching tuples in the order of the results, and stars by their round."""
        found = [(self.local(n) // self.size, 0, n % self.cores, n) for n in self.matches]
        found += [(number, 1, 0, "star") for number in self.starred]
        return [what for *_, what in sorted(found)] + ["end"]


def probes_in_rounds(generator, cores, size, count, *, share=0.3):
    """Successive probes, between which the window moves."""
    start = end = 0
    for _ in range(count):
        end += generator.choice([0, 1, 2, cores, 5 * cores * size])
        start = max(start, end - generator.choice([0, 1, cores - 1, cores, 3 * cores * size + 1]))
        matches = frozenset(n for n in range(start, end) if generator.random() < share)
        yield Probe(cores, size, start, end, matches)
