# SPDX-License-Identifier: Apache-2.0
"""Accelerators and input scripts that every device must agree on."""

from itertools import accumulate, groupby
import json
from types import SimpleNamespace

import numpy as np

from hdl.manifest import describe, fingerprint
from hdl.parameters import JoinParameters, KeyField
from host.protocol.codecs import WordCodec
from tests.host.naive import NaiveAccelerator


def near(r, s):
    """A custom predicate: close in x, or equal in y."""
    return ((r.x - s.x) * (r.x - s.x) <= 9) | (r.y == s.y)


X8 = (KeyField(name="x", bits=8),)
MIXED = (KeyField(name="x", bits=5, signed=False), KeyField(name="y", bits=7))

#: Small ones, of all kinds; more than two cores are not a power of two.
BUNDLES = {
    "plain": JoinParameters.of(cores=1, sub_window=5, keys=X8),
    "tiny": JoinParameters.of(cores=2, sub_window=4, keys=X8, timestamp_bits=16, probe_bits=2),
    "groups": JoinParameters.of(
        cores=3, sub_window=5, keys=MIXED, timestamp_bits=10, lanes=2, probes=4, fan_in=2,
        fan_out=2, probe_bits=3,
    ),
    "wide": JoinParameters.of(
        cores=4, sub_window=3, keys=(KeyField(name="x", bits=64),), timestamp_bits=64, fan_in=3,
        lanes=3, probes=2,
    ),
    "equality": JoinParameters.of(
        cores=2, sub_window=6, keys=MIXED, comparator="equality", probes=2,
    ),
    "custom": JoinParameters.of(
        cores=2, sub_window=6, keys=MIXED, comparator="custom",
        predicate="tests.host.small_bundles:near", timestamp_bits=8,
    ),
}  # fmt: skip


def new_naive(parameters):
    """Return a :class:`NaiveAccelerator`, right after reset."""
    custom = None
    if parameters.predicate.kind == "custom":

        def custom(r, s):
            return near(SimpleNamespace(**r), SimpleNamespace(**s))

    return NaiveAccelerator(parameters, custom)


def expected(parameters, script):
    """Return the result words of a script, as :class:`NaiveAccelerator` has them.

    Of two result ports, the order is that of :func:`side_by_side`, as in :func:`unpack`.
    """
    results = new_naive(parameters).run(script)
    return results if parameters.engine.result_streams == 1 else side_by_side(results)


def side_by_side(results):
    """Return results with those of R before those of S up to each mark.

    It is what remains fixed where each side has a port of its own.
    """
    marks = list(accumulate((word[0] == "MARK" for word in results), initial=0))
    lane = [2 if word[0] == "MARK" else word[1] for word in results]
    order = sorted(range(len(results)), key=lambda n: (marks[n], lane[n]))
    return [results[n] for n in order]


def random_tuples(parameters, rng, count, *, spread=6, share_r=0.5, pace=2, start=0):
    """Return tuples with keys around zero, so that many match."""
    tuples, now = [], start
    for _ in range(count):
        now += int(rng.integers(0, pace + 1))
        keys = {}
        for key in parameters.keys:
            low = max(-spread, -(1 << key.bits - 1)) if key.signed else 0
            keys[key.name] = int(rng.integers(low, spread + 1))
        tuples.append(("R" if rng.random() < share_r else "S", keys, now))
    return tuples


def configuration(parameters, *, bounds=(-2, 2), windows=None, period=1):
    """Return the control words that begin a query: bounds, windows, precision, CLEAR."""
    script = []
    for index in range(len(parameters.keys)):
        script += [("BOUND_LOW", index, bounds[0]), ("BOUND_HIGH", index, bounds[1])]
    for index, (kind, size) in enumerate(windows or [("WINDOW", parameters.capacity)] * 2):
        script.append((kind, index, size))
    return [*script, ("PRECISION", 0, period), ("CLEAR", 0, 0)]


FLUSH = ("FLUSH", 0, 0)


def write_manifest(parameters, folder):
    """Write a bundle without Verilog, which the software device does not need."""
    values = describe(parameters, "", verilog_file="")
    values |= {"files": {}, "tools": {}}
    values["hash"] = fingerprint(values, "")
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(values), encoding="utf-8")
    return folder


def pack(manifest, script):
    """Return the input words of a script."""
    codec = WordCodec(manifest)
    words = [np.zeros((0, manifest.input_word.columns), np.uint64)]
    for is_tuple, some in groupby(script, lambda step: step[0] in ("R", "S")):
        if is_tuple:
            sides, keys, times = zip(*some, strict=True)
            columns = {
                key.name: np.array(
                    [values[key.name] for values in keys], np.int64 if key.signed else np.uint64
                )
                for key in manifest.keys
            }
            numbers = np.array(["RS".index(side) for side in sides])
            words.append(codec.pack_tuples(numbers, columns, np.array(times)))
            continue
        for kind, first, second in some:
            words.append(first if kind == "ILLEGAL" else codec.pack_control(kind, first, second))
    return np.concatenate(words)


def unpack(manifest, words):
    """Return result words in the form of :class:`NaiveAccelerator`.

    Of two result ports, the order is that of :func:`side_by_side`.
    """
    codec = WordCodec(manifest)
    fields = codec.unpack_results(codec.split_words(words)[0])
    results = []
    for i in range(len(fields)):
        side = int(fields.side[i])
        errors = (int(fields.overflow[i]), bool(fields.disorder[i]), bool(fields.illegal[i]))
        if fields.kind[i] == codec.pair:
            place = (fields.probe[i], fields.core[i], fields.row[i], fields.lane[i])
            results.append(("PAIR", side, *map(int, place)))
        elif fields.kind[i] == codec.star:
            results.append(("STAR", side, *errors))
        else:
            results.append(("MARK", *errors))
    return results if len(manifest.result_ports) == 1 else side_by_side(results)


def by_star(results):
    """Return results with the pairs between two stars of a side sorted, side by side.

    It is what remains fixed when order is free: which pairs lie between which stars.
    """
    sides, blocks = [[], []], []
    for word in results:
        if word[0] == "MARK":
            blocks.append((*sides, word))
            sides = [[], []]
        elif word[0] == "STAR":
            sides[word[1]].append((word,))
        else:
            sides[word[1]].append(word)
    blocks.append((*sides, None))
    return [(*map(_sorted_periods, block[:2]), block[2]) for block in blocks]


def _sorted_periods(words):
    periods, pairs = [], []
    for word in words:
        if isinstance(word[0], tuple):
            periods.append((sorted(pairs), word[0]))
            pairs = []
        else:
            pairs.append(word)
    return [*periods, (sorted(pairs), None)]
