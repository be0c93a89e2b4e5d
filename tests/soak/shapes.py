# SPDX-License-Identifier: Apache-2.0
"""Random parameters of accelerators, each from a seed and a number."""

from dataclasses import replace

import numpy as np

from bench.handshake import HANDSHAKE, LOW_LATENCY, Handshake
from hdl.parameters import JoinParameters, KeyField

from .predicates import CUSTOM

__all__ = ["KINDS", "engine_of", "random_shape", "shape_facts"]

handshake_13, handshake_16 = (Handshake(ordinal_bits=bits) for bits in (13, 16))
expedited_13, expedited_16 = (Handshake(expedited=True, ordinal_bits=bits) for bits in (13, 16))
#: Chains, by their kinds: what parameters call them, half of them with numbers of short length.
CHAINS = {
    "handshake": (
        *[HANDSHAKE] * 2, f"{__name__}:handshake_13", f"{__name__}:handshake_16",
    ),
    "low-latency-handshake": (
        *[LOW_LATENCY] * 2,
        f"{__name__}:expedited_13", f"{__name__}:expedited_16",
    ),
}  # fmt: skip
#: Engines, or kinds of a chain, and comparators, in turn: so a run of a few shapes has met
#: all of them. An external engine is a scan whose windows are in external memory, an aggregate one
#: that reduces the matches of each tuple of R, a crowd an index or a scan of many cores.
KINDS = (
    ("index", "equality"),
    ("scan", "band"),
    ("index", "band"),
    ("external", "band"),
    ("crowd", "equality"),
    ("scan", "equality"),
    ("scan", "digest"),
    ("index", "equality"),
    ("index", "band"),
    ("scan", "custom"),
    ("scan", "band digest"),
    ("external", "equality"),
    ("low-latency-handshake", "band"),
    ("handshake", "equality"),
    ("low-latency-handshake", "equality"),
    ("handshake", "band"),
    ("low-latency-handshake", "custom"),
    ("handshake", "custom"),
    ("external", "custom"),
    ("aggregate", "band"),
    ("aggregate", "equality"),
    ("aggregate", "custom"),
    ("crowd", "band"),
)
#: Most cores of an accelerator that is no crowd, and of one that is.
FEW_CORES, MOST_CORES = 9, 64
#: Least slack that there is, in rows of a core's ring.
LEAST_SLACK = 2


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


def random_predicate(random, comparator):
    """Return the name of a custom predicate, or None for other comparators."""
    if comparator != "custom":
        return None
    return f"tests.soak.predicates:{choose(random, sorted(CUSTOM))}"


def random_timestamp_bits(random):
    """Return the width of a timestamp, which is zero if there is none."""
    if random.random() >= 0.6:
        return 0
    return choose(random, [1, 4, 8, 12, 16, 24, 32, 48])


def random_chain(random, kind, comparator, fields):
    """Return the parameters of a chain of cores."""
    return JoinParameters.of(
        comparator=comparator, keys=fields,
        predicate=random_predicate(random, comparator),
        cores=choose(random, [1, 1, 2, 2, 3, 4, 5, 7, 9]), sub_window=int(60 ** random.random()),
        timestamp_bits=random_timestamp_bits(random), fan_in=choose(random, [2, 2, 3, 4, 5]),
        architecture=choose(random, CHAINS[kind]),
    )  # fmt: skip


def random_aggregate(random, comparator, fields):
    """Return the parameters of a join aggregate."""
    cores, probes = choose(random, [1, 2, 2, 3, 4, 5, 7]), choose(random, [1, 1, 2, 3, 4, 8])
    return JoinParameters.of(
        comparator=comparator, keys=fields, predicate=random_predicate(random, comparator),
        cores=cores, probes=probes, lanes=choose(random, [1, 1, 2, 3, 4, 5]),
        sub_window=int((300 if cores < 3 else 60) ** random.random()),
        timestamp_bits=random_timestamp_bits(random),
        fan_out=choose(random, [2, 2, 3, 4, 5]), fan_in=choose(random, [2, 2, 3, 4, 5]),
        probe_bits=max((probes - 1).bit_length(), choose(random, [0, 1, 3, 6, 10])),
        value_bits=choose(random, [1, 2, 7, 16, 32, 40]),
    )  # fmt: skip


def random_crowd(random, comparator, fields):
    """Return the parameters of many cores with the least slack, so groups may wait for few tuples.

    Such a library takes longer to build than any other one. So the cores are as plain as they can
    be, and have neither gates nor parity.
    """
    index = random.random() < 0.7
    under_way = 32 if index else 0  # words in an index, each of which needs room
    cores = int(random.integers(max(FEW_CORES, under_way + 6) + 1, MOST_CORES + 1))
    probes = int(random.integers(2, (cores - under_way) // 3 + 1))
    parameters = JoinParameters.of(
        engine="index" if index else "scan", comparator=comparator,
        keys=(replace(fields[0], bits=min(fields[0].bits, 16)),), cores=cores, probes=probes,
        timestamp_bits=choose(random, [0, 0, 8, 16]), sub_window=int(12 ** random.random()),
        bucket_bits=choose(random, [None, 1, 3]) if index else None,
        fan_out=choose(random, [2, 4, 5]), fan_in=choose(random, [2, 4, 5]),
        probe_bits=max((probes - 1).bit_length(), choose(random, [0, 1, 3, 6, 10])),
        tuples_per_word=choose(random, [1, 2, 2]) if index else 1,
    )  # fmt: skip
    assert parameters.slack == LEAST_SLACK
    return parameters


def in_memory(random, parameters):
    """Return an accelerator with its windows in external memory; larger ones, most of the time."""
    row = max(8, parameters.engine.lanes * parameters.key_bits)
    return parameters.with_(
        store="external",
        memory_width=1 << (row - 1).bit_length() + (row <= 512 and int(random.integers(2))),
        memory_burst=choose(random, [1, 2, 4, 8, 16]),
        memory_latency=choose(random, [0, 5, 20, 64]),
        sub_window=max(parameters.window.sub_window, int(500 ** random.random())),
    )


def random_shape(seed, number):
    """Return the :class:`hdl.parameters.JoinParameters` of a number, the same whenever asked."""
    random = np.random.default_rng([seed, number])
    engine, comparator = KINDS[number % len(KINDS)]
    fields = random_fields(random, comparator)
    if engine in CHAINS:
        return random_chain(random, engine, comparator, fields)
    if engine == "aggregate":
        return random_aggregate(random, comparator, fields)
    if engine == "crowd":
        return random_crowd(random, comparator, fields)
    digest = None
    if comparator == "band digest":
        comparator = "band"
        digest = int(random.integers(2 * len(fields), 24 + 1))
    elif comparator == "digest":
        comparator = "equality"
        bits = sum(field.bits for field in fields)
        if bits < 2:
            fields, bits = (KeyField(name="a", bits=32),), 32
        digest = int(random.integers(1, min(24, bits - 1) + 1))
    predicate = random_predicate(random, comparator)
    cores = choose(random, [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
    probes = choose(random, [1, 1, 2, 3, 4, 5, 8, 16])
    index, external = engine == "index", engine == "external"
    timestamp_bits = random_timestamp_bits(random)
    most = 300 if index or cores < 3 else 60
    parameters = JoinParameters.of(
        engine="scan" if external else engine, comparator=comparator, predicate=predicate,
        digest_bits=digest, keys=fields, cores=cores, probes=probes, timestamp_bits=timestamp_bits,
        lanes=1 if index else choose(random, [1, 1, 2, 3, 4, 5]),
        sub_window=int(most ** random.random()),
        bucket_bits=choose(random, [None, None, 1, 3, 5, 8]) if index else None,
        fan_out=choose(random, [2, 2, 3, 4, 5]), fan_in=choose(random, [2, 2, 3, 4, 5]),
        probe_bits=max((probes - 1).bit_length(), choose(random, [0, 1, 3, 4, 6, 8, 10])),
        tuples_per_word=choose(random, [1, 2]) if index else 1,
    )  # fmt: skip
    rounds = (
        random.random() < 0.4
        and not index
        and parameters.engine.lanes != 3
        and parameters.engine.lanes != 5
    )
    if rounds:
        parameters = parameters.with_(rounds=True)
    if random.random() < 0.5 and not external:
        parameters = parameters.with_(failure_cycles=parameters.longest_silence)
        parameters = parameters.with_(parity=random.random() < 0.4)
    parameters = parameters.with_(result_streams=2 if random.random() < 0.3 else 1)
    return in_memory(random, parameters) if external else parameters


def engine_of(parameters):
    """Return the engine, or the kind of a chain, as it is in :data:`KINDS`."""
    for kind, names in CHAINS.items():
        if parameters.architecture in names:
            return kind
    if parameters.is_aggregated:
        return "aggregate"
    if parameters.cores > FEW_CORES:
        return "crowd"
    return "external" if parameters.engine.has_memory else parameters.words()["engine"]


def shape_facts(parameters):
    """Yield what coverage counts of a shape: pairs of a parameter's name and its value."""
    words = parameters.words() | {"slack": parameters.slack}
    yield "engine", f"{engine_of(parameters)} {parameters.predicate.kind}"
    if parameters.engine.digest_bits:
        yield "digest bits", parameters.engine.digest_bits
    if words.get("predicate"):
        yield "predicate", words["predicate"].partition(":")[2]
    for name in ("cores", "slack", "lanes", "probes", "fan_out", "fan_in", "tuples_per_word",
                 "timestamp_bits", "probe_bits"):  # fmt: skip
        yield name.replace("_", " "), words.get(name, 1)
    if parameters.arrangement.has_stars:
        if parameters.engine.has_rounds:
            yield "rounds", parameters.engine.rounds
        yield "gates", parameters.has_gates
        yield "parity", parameters.engine.parity
        yield "result streams", parameters.engine.result_streams
    else:
        yield "ordinal bits", parameters.arrangement.ordinal_bits
    if parameters.is_aggregated:
        yield "value bits", parameters.engine.value_bits
    for name in ("bucket_bits", "memory_width", "memory_burst", "memory_latency"):
        if name in words:
            yield name.replace("_", " "), words[name]
    yield "window of a core", f"up to {1 << (parameters.window.sub_window - 1).bit_length()}"
    yield "fields", len(parameters.keys)
    for field in parameters.keys:
        yield "field", f"{'signed' if field.signed else 'unsigned'} {field.bits}"
