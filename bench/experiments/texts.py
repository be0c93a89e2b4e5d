# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Q1 on hardware: wordcount, paircount and longest tweet, of tuples with many keys.

Texts are rows of word numbers: drawn with the frequencies of English, or a text that is free,
Abraham Lincoln's address at Gettysburg (1863). The value of every window and key is checked.
"""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
import re

import numpy as np
import pyarrow as pa

from bench.simulated import aggregated
from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.windowed.description import OperatorDescription
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.windowed import Field, Key, Reduction, WindowedOperator

__all__ = [
    "DISTANCES", "KEY_BITS", "LONGEST", "SOURCES", "TextPlot", "TextPoint", "Texts", "address",
    "check_values", "counting", "english", "hashtags", "longest", "text_plots",
    "texts_with_each_key", "windows_of_texts",
]  # fmt: skip

#: Zipf's law with Mandelbrot's shift: the word of rank r occurs in proportion to (r + 2.7) ** -1.
SHIFT = 2.7
#: Most characters of a tweet.
MOST_CHARS = 280


@dataclass(frozen=True)
class Texts:
    """Texts whose words are numbered by how frequent they are, from 0 on.

    Parameters
    ----------
    words : array of int64
        A row per text, with zeros behind its last word.
    lengths : array of int64
        Words of each text.
    chars : array of int64
        Characters of each text.
    """

    words: np.ndarray
    lengths: np.ndarray
    chars: np.ndarray

    def columns(self):
        """Return the fields of the operators."""
        named = {f"word{n}": column for n, column in enumerate(self.words.T)}
        return {**named, "words": self.lengths, "chars": self.chars}

    def within(self, vocabulary):
        """Return the texts without the words beyond a vocabulary."""
        most = self.words.shape[1]
        kept = (np.arange(most) < self.lengths[:, None]) & (self.words < vocabulary)
        order = np.argsort(~kept, axis=1, kind="stable")
        words = np.take_along_axis(np.where(kept, self.words, 0), order, axis=1)
        return Texts(words, kept.sum(axis=1), self.chars)


def english(count, *, vocabulary, most, least=4, seed=25):
    """Return random texts of ``least`` to ``most`` words, with the frequencies of English."""
    generator = np.random.default_rng(seed)
    weights = 1 / (np.arange(vocabulary) + 1 + SHIFT)
    words = generator.choice(vocabulary, (count, most), p=weights / weights.sum())
    lengths = generator.integers(min(least, most), most + 1, count)
    chars = generator.integers(1, MOST_CHARS + 1, count)
    return Texts(np.where(np.arange(most) < lengths[:, None], words, 0), lengths, chars)


def hashtags(count, *, vocabulary, most):
    """Return random tweets of one to ``most`` hashtags, which are as frequent as words are."""
    return english(count, vocabulary=vocabulary, most=most, least=1)


def address(count, *, vocabulary, most):
    """Return the free text, over and over, in pieces of sentences of at most ``most`` words."""
    text = Path(__file__).with_name("address.txt").read_text(encoding="utf-8")
    sentences = [re.findall(r"[a-z]+", line.lower()) for line in text.splitlines()]
    spoken = [word for sentence in sentences for word in sentence]
    ranks = sorted(dict.fromkeys(spoken), key=lambda word: (-spoken.count(word), word))
    number = {word: rank for rank, word in enumerate(ranks)}
    pieces = [
        [number[word] for word in sentence[at : at + most]]
        for sentence in sentences
        for at in range(0, len(sentence), most)
    ]
    lengths = np.array([len(piece) for piece in pieces])
    size = np.array([len(word) + 1 for word in ranks])
    chars = np.array([size[piece].sum() - 1 for piece in pieces])
    words = np.array([piece + [0] * (most - len(piece)) for piece in pieces])
    again = np.arange(count) % len(pieces)
    return Texts(words[again], lengths[again], chars[again]).within(vocabulary)


#: Where texts come from.
SOURCES = {"english": english, "hashtags": hashtags, "address": address}


#: Largest distance of two words that are a pair (the seed's B); None counts words.
DISTANCES = {"wordcount": None, "paircount L": 3, "paircount M": 10, "paircount H": 1 << 16}
#: What finds the longest tweet of each hashtag; the words of its texts are hashtags.
LONGEST = "longest tweet"
#: Bits of the number of characters of a text.
CHARS_BITS = 9


def text_fields(most, bits):
    """Return the fields of a text: its words by number, and how many there are."""
    words = [Field(f"word{n}", bits, signed=False) for n in range(most)]
    return [*words, Field("words", most.bit_length(), signed=False)]


def counting(kind, *, most, bits):
    """Return the operator that counts the texts with each word, or with each pair of words.

    Windows have two panes of one unit of time, as the seed's have.

    Parameters
    ----------
    kind : str
        One of :data:`DISTANCES`.
    most : int
        Most words of a text.
    bits : int
        Width of the number of a word.
    """
    distance = DISTANCES[kind]
    if distance is None:
        keys = [Key(f"word{n}", when=f"words > {n}") for n in range(most)]
        names = ["word"]
    else:
        keys = [
            Key([f"word{i}", f"word{j}"], when=f"words > {j}")
            for i in range(most)
            for j in range(i + 1, min(i + distance + 1, most))
        ]
        names = ["first", "second"]
    return WindowedOperator(
        name=kind.replace(" ", "_").lower(),
        size=2,
        advance=1,
        fields=text_fields(most, bits),
        keys=keys,
        key_names=names,
        reductions=[Reduction("texts", "count", bits=20)],
    )


def longest(*, most, bits):
    """Return the operator that finds the most characters of the texts with each word.

    Its windows and keys are those of :func:`counting` words.
    """
    return WindowedOperator(
        name="longest_tweet",
        size=2,
        advance=1,
        fields=[*text_fields(most, bits), Field("chars", CHARS_BITS, signed=False)],
        keys=[Key(f"word{n}", when=f"words > {n}") for n in range(most)],
        key_names=["word"],
        reductions=[Reduction("longest", "max", "chars")],
    )


#: Bits of a key: a word, or both words of a pair.
KEY_BITS = 14
#: Most cycles of a run for each key, beyond which something hangs.
MOST_CYCLES = 64


@dataclass(frozen=True)
class TextPoint:
    """What is measured.

    Parameters
    ----------
    kind : str
        One of :data:`DISTANCES`, or :data:`LONGEST`.
    cores : int
        Cores of the accelerator.
    source : str
        One of :data:`SOURCES`.
    most : int
        Most words of a text.
    pane_texts, panes : int
        Texts of a pane, and number of panes.
    """

    kind: str
    cores: int = 1
    source: str = "english"
    most: int = 16
    pane_texts: int = 2500
    panes: int = 8

    store = "texts.jsonl"

    @property
    def accelerator(self):
        """Name of the accelerator, which depends on neither the texts nor the panes."""
        return f"{self.kind.replace(' ', '-').lower()}-{self.most}-{self.cores}"

    @property
    def bits(self):
        """Width of the number of a word."""
        return KEY_BITS if DISTANCES.get(self.kind) is None else KEY_BITS // 2

    @property
    def operator(self):
        """What the accelerator does."""
        if self.kind == LONGEST:
            return longest(most=self.most, bits=self.bits)
        return counting(self.kind, most=self.most, bits=self.bits)

    @property
    def parameters(self):
        """Parameters of the accelerator."""
        return AggregateParameters(
            operator=OperatorDescription.from_dict(self.operator.to_dict()),
            cores=self.cores,
            timestamp_bits=16,
        )

    def measure(self, manifest):
        """Send texts as fast as they are accepted, and check the value of every window and key.

        Parameters
        ----------
        manifest : AggregateManifest
            Of a bundle whose library is built.

        Returns
        -------
        dict
            ``cycles`` from the first text of the second pane to the last one; the ``texts`` from
            there on, their ``words``, and their ``keys``, of which each text has a set; ``results``
            of all windows.
        """
        operator = self.operator
        texts = SOURCES[self.source](
            self.pane_texts * self.panes, vocabulary=1 << self.bits, most=self.most
        )
        times = np.repeat(np.arange(self.panes), self.pane_texts)
        columns = {field.name: texts.columns()[field.name] for field in operator.fields}
        expected = windows_of_texts(operator, times, columns)
        counts = texts_with_each_key(self, times, columns)
        keys = int(counts.sum()) // operator.size  # each of them is in so many windows
        end = self.panes + operator.size
        room = len(expected) + end + 1
        run = aggregated(
            manifest.path, times, columns, end=end, room=room,
            most=MOST_CYCLES * (keys + len(times) + room),
        )  # fmt: skip
        names = ("boundary", "key", f"window.{operator.reductions[0].name}")
        check_values(operator, expected, *(run.values[name] for name in names))
        # The accelerator begins with a scan of all rows, for which the first tuples wait.
        accepted = run.accepted[self.pane_texts :]
        return {
            "cycles": int(accepted[-1] - accepted[0]),
            "texts": len(accepted),
            "words": int(texts.lengths[self.pane_texts :].sum()),
            "keys": keys - int(counts[expected.window_end == 1].sum()),
            "results": len(expected),
        }


def windows_of_texts(operator, times, columns):
    """Return what the host gives for texts, in the order of (end, key), as a data frame."""
    rows = pa.table({"timestamp": times, **columns})
    return operate_tables([rows], OperatorQuery(operator)).to_pandas()


def texts_with_each_key(point, times, columns):
    """Return the number of texts of each window and key, in the order of the results."""
    kind = "wordcount" if point.kind == LONGEST else point.kind
    counted = counting(kind, most=point.most, bits=point.bits)
    named = {field.name: columns[field.name] for field in counted.fields}
    return windows_of_texts(counted, times, named).texts.to_numpy()


def check_values(operator, expected, boundary, key, value):
    """Raise :exc:`AssertionError` unless the results are those that are expected."""
    number, place = np.zeros(len(expected), np.int64), 0
    for field, name in zip(operator.key_fields, operator.key_names, strict=True):
        number |= expected[name].to_numpy() << place
        place += field.bits
    end = expected.window_end.to_numpy()
    wanted = np.lexsort((number, end))
    order = np.lexsort((key, boundary))
    pairs = (
        (boundary, end),
        (key, number),
        (value, expected[operator.reductions[0].name].to_numpy()),
    )
    if len(order) != len(wanted) or not all(
        (got[order] == other[wanted]).all() for got, other in pairs
    ):
        raise AssertionError("a window has another value than its texts")


@dataclass(frozen=True)
class TextPlot:
    """A figure over the keys of a text; drawn like a :class:`~bench.experiments.catalogue.Plot`.

    Parameters
    ----------
    name, title, conditions : str
        Name and texts.
    points : tuple of TextPoint
        What is measured.
    """

    name: str
    title: str
    conditions: str
    points: tuple[TextPoint, ...]

    x_label = "keys per text"
    y_label = "keys per cycle"
    log_x = log_y = False

    def lines(self, found):
        """Return label and (keys per text, keys per cycle) of each series."""
        series = {}
        for point in self.points:
            measured = found[point]
            cores = "1 core" if point.cores == 1 else f"{point.cores} cores"
            series.setdefault(f"{cores}, {point.source}", []).append(
                (measured["keys"] / measured["texts"], measured["keys"] / measured["cycles"])
            )
        return [(label, sorted(places)) for label, places in series.items()]

    def table(self, found):
        """Yield the rows of the CSV file, one for each point."""
        names = list(found[self.points[0]])
        rates = ("keys_per_text", "keys_per_cycle", "texts_per_1000_cycles")
        yield [*(field.name for field in fields(TextPoint)), *names, *rates]
        for point in self.points:
            row = found[point]
            rates = (
                row["keys"] / row["texts"],
                row["keys"] / row["cycles"],
                1000 * row["texts"] / row["cycles"],
            )
            counts = (row[name] for name in names)
            yield [*asdict(point).values(), *counts, *(f"{rate:.4g}" for rate in rates)]


def text_plots(*, quick=False):
    """Return the figures by name; quick ones have one core, fewer texts and no pairs."""
    small = {"pane_texts": 1200, "panes": 4} if quick else {}
    words = TextPoint("wordcount", **small)
    points = [words, replace(words, source="address")]
    if not quick:
        points += [TextPoint(kind) for kind in DISTANCES if kind != words.kind]
        points += [TextPoint(points[-1].kind, source="address")]
        points += [TextPoint(kind, cores=4) for kind in ("wordcount", "paircount L")]
    tweets = TextPoint(LONGEST, source="hashtags", most=4, **(small or {"pane_texts": 8000}))
    both = (
        TextPlot(
            "texts",
            "Wordcount and paircount (Q1 of STRETCH): keys of tuples per cycle",
            f"Saturated; texts of 4 to 16 words with the frequencies of English, 2^{KEY_BITS} "
            f"keys, windows of two panes.",
            tuple(points),
        ),
        TextPlot(
            "tweets",
            "Longest tweet of each hashtag (Operator 9 of STRETCH): keys of tuples per cycle",
            f"Saturated; tweets of 1 to {tweets.most} hashtags with the frequencies of English, "
            f"2^{KEY_BITS} keys, windows of two panes.",
            (tweets,) if quick else (tweets, replace(tweets, cores=4)),
        ),
    )
    return {plot.name: plot for plot in both}
