# SPDX-License-Identifier: Apache-2.0
"""Rows of match bits, what becomes of them, and driving what makes that of them."""

from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench

__all__ = ["as_tuple", "by_probe", "match_bits", "queue_parameters", "random_rows", "serialize"]


def queue_parameters(lanes, probes):
    """Parameters with a short probe index."""
    return JoinParameters.of(lanes=lanes, probes=probes, probe_bits=4, sub_window=50)


def match_bits(parameters, bits):
    """The matches of a row, lane by lane, from a number."""
    probes = parameters.engine.probes
    return [bits >> lane * probes & (1 << probes) - 1 for lane in range(parameters.engine.lanes)]


def by_probe(parameters, row):
    """A row with its matches probe by probe, as the scanner has them."""
    bits = range(parameters.engine.lanes)
    turned = [
        sum((row["matches"][lane] >> probe & 1) << lane for lane in bits)
        for probe in range(parameters.engine.probes)
    ]
    return {**row, "matches": turned}


def random_rows(parameters, generator, groups):
    """Rows of match bits, and the words that they become."""
    rows, words = [], []
    lanes, probes = parameters.engine.lanes, parameters.engine.probes
    base = 0
    for group in range(groups):
        count = generator.randrange(1, probes + 1)
        star = generator.random() < 0.7 or base + probes > 16 - probes
        mark = generator.random() < 0.2
        for n in range(length := generator.randrange(1, 6)):
            last = n == length - 1
            bits = generator.choice([0, 0, 1, 2, 5, (1 << lanes * probes) - 1])
            bits &= (1 << lanes * probes) - 1
            punctuation = {"overflow": group % 2, "disorder": 0, "free": 0}
            if not bits and not last:
                continue
            rows.append(
                {
                    "matches": match_bits(parameters, bits),
                    "row": n,
                    "last": last,
                    "ending": {
                        "count": count,
                        "star": star,
                        "mark": mark,
                        "punctuation": punctuation,
                    },
                }
            )
            words += [
                (ResultKind.PAIR, (base + bit % probes) % 16, bit // probes, n)
                for bit in range(lanes * probes)
                if bits >> bit & 1
            ]
            if last and star:
                words.append((ResultKind.STAR, group % 2))
            if last and mark:
                words.append((ResultKind.MARK, group % 2))
        base = 0 if star else base + count
    return rows, words


def as_tuple(word):
    """What a word says."""
    if word.kind == ResultKind.PAIR:
        pair = word.body.pair
        return ResultKind.PAIR, pair.probe, pair.lane, pair.row
    return word.kind, word.body.punctuation.overflow


def serialize(dut, layout_in, words, count, *, stalls=0.0, stamps=None):
    """Send words through a serializer; return what comes out."""
    bench = StreamBench(dut, deadline=10_000, stalls=stalls, seed=3)
    payloads = [integer(layout_in, word) for word in words]
    bench.source(dut.i, payloads, stamps=stamps and stamps[0])
    received = bench.sink(dut.o, count, stamps=stamps and stamps[1])
    bench.run(extra_cycles=20)
    return [dut.o.payload.shape().from_bits(word) for word in received]
