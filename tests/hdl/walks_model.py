# SPDX-License-Identifier: Apache-2.0
"""A ring of entries in chains, and the probes that walk along them, at random."""

from dataclasses import dataclass

from hdl.parameters import KeyField
from tests.hdl.input_words import criterion_of, stored_key

__all__ = ["KEYS", "Ring", "Walk", "random_criterion"]

KEYS = (KeyField(name="x", bits=3), KeyField(name="y", bits=1, signed=False))


@dataclass
class Walk:
    """A probe on its way along a chain, as it is queued."""

    place: int
    age: int
    bucket: int
    probe: int
    group: int
    queue: int
    begun: int  # the cycle


class Ring:
    """Entries of few buckets and few keys, most with a link to the one before them."""

    def __init__(self, parameters, generator, *, single=False):
        self.generator = generator
        rows = self.rows = parameters.ring_rows
        self.bucket_count = 1 << parameters.engine.bucket_bits
        self.stored = [stored_key(parameters, random_key(generator)) for _ in range(rows)]
        self.buckets = [
            0 if single else generator.randrange(self.bucket_count) for _ in range(rows)
        ]
        self.links = [0] * rows
        for place, own in enumerate(self.buckets):
            link = next((back for back in range(1, rows) if self.buckets[place - back] == own), 0)
            stale = generator.choice([0, generator.randrange(rows)])
            self.links[place] = link if single or generator.random() < 0.85 else stale

    def entry(self, bank, banks):
        """Where a walk of this bank sets out; often its link leads just to the end of its span."""
        generator = self.generator
        bucket = generator.randrange(self.bucket_count) // banks * banks + bank
        own = [place for place in range(self.rows) if self.buckets[place] == bucket]
        stale = generator.random() < 0.1 or not own
        place = generator.randrange(self.rows) if stale else generator.choice(own)
        link = self.links[place]
        edge = generator.choice([link - 1, link, link + 1]) % self.rows
        age = generator.choice([edge, *[generator.randrange(self.rows)] * 3])
        return {"place": place, "age": age, "bucket": bucket}


def random_key(generator):
    """One of eight keys, by field."""
    return {"x": generator.randrange(-2, 2), "y": generator.randrange(2)}


def random_criterion(parameters, generator):
    """What a probe compares keys with."""
    bounds = {"x": sorted(generator.choices(range(-3, 4), k=2)), "y": (-1, 1)}
    return criterion_of(parameters, 0, random_key(generator), bounds)
