# SPDX-License-Identifier: Apache-2.0
"""Random parameters of accelerators, each from a seed and a number."""

import numpy as np

from hdl.parameters import JoinParameters, KeyField

from .predicates import CUSTOM

__all__ = ["KINDS", "random_shape", "shape_facts"]

#: Engines and comparators, in turn: so a run of a few shapes has met all of them.
KINDS = (
    ("index", "equality"),
    ("scan", "band"),
    ("index", "band"),
    ("scan", "equality"),
    ("scan", "digest"),
    ("index", "equality"),
    ("index", "band"),
    ("scan", "custom"),
)


def choose(random, values):
    """Return one of some values, as Python has it."""
    return values[int(random.integers(len(values)))]


def random_fields(random, comparator):
    """Return one to three key fields; two small ones for a custom predicate."""
    if comparator == "custom":
        return tuple(
            KeyField(name=name, bits=int(random.integers(2, 17)), signed=bool(random.integers(2)))
            for name in "ab"
        )
    count = choose(random, [1, 1, 2, 2, 3])
    widths = [1, 2, 3, 5, 8, 8, 13, 16, 16, 21, 32, 32, 33, 40, 48, 63, 64, 64]
    return tuple(
        KeyField(name="abc"[n], bits=choose(random, widths), signed=bool(random.integers(2)))
        for n in range(count)
    )


def random_shape(seed, number):
    """Return the :class:`hdl.parameters.JoinParameters` of a number, the same whenever asked."""
    random = np.random.default_rng([seed, number])
    engine, comparator = KINDS[number % len(KINDS)]
    fields = random_fields(random, comparator)
    digest = None
    if comparator == "digest":
        comparator = "equality"
        bits = sum(field.bits for field in fields)
        if bits < 2:
            fields, bits = (KeyField(name="a", bits=32),), 32
        digest = int(random.integers(1, min(24, bits - 1) + 1))
    predicate = None
    if comparator == "custom":
        predicate = f"sim.soak.predicates:{choose(random, sorted(CUSTOM))}"
    cores = choose(random, [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
    probes = choose(random, [1, 1, 2, 3, 4, 5, 8, 16])
    index = engine == "index"
    timestamp_bits = 0
    if random.random() < 0.6:
        timestamp_bits = choose(random, [1, 4, 8, 12, 16, 24, 32, 48])
    most = 300 if index or cores < 3 else 60
    return JoinParameters(
        engine=engine, comparator=comparator, predicate=predicate, digest_bits=digest, keys=fields,
        cores=cores, probes=probes, timestamp_bits=timestamp_bits,
        lanes=1 if index else choose(random, [1, 1, 2, 3, 4, 5]),
        sub_window=int(most ** random.random()),
        bucket_bits=choose(random, [None, None, 1, 3, 5, 8]) if index else None,
        fan_out=choose(random, [2, 2, 3, 4, 5]), fan_in=choose(random, [2, 2, 3, 4, 5]),
        probe_bits=max((probes - 1).bit_length(), choose(random, [0, 1, 3, 4, 6, 8, 10])),
        tuples_per_word=choose(random, [1, 1, 2]),
    )  # fmt: skip


def shape_facts(parameters):
    """Yield what coverage counts of a shape: pairs of a parameter's name and its value."""
    yield "engine", f"{parameters.engine} {parameters.comparator}"
    if parameters.digest_bits:
        yield "digest bits", parameters.digest_bits
    if parameters.predicate:
        yield "predicate", parameters.predicate.partition(":")[2]
    for name in ("cores", "lanes", "probes", "fan_out", "fan_in", "tuples_per_word",
                 "timestamp_bits", "probe_bits"):  # fmt: skip
        yield name.replace("_", " "), getattr(parameters, name)
    if parameters.engine == "index":
        yield "bucket bits", parameters.bucket_width
    yield "window of a core", f"up to {1 << (parameters.sub_window - 1).bit_length()}"
    yield "fields", len(parameters.keys)
    for field in parameters.keys:
        yield "field", f"{'signed' if field.signed else 'unsigned'} {field.bits}"
