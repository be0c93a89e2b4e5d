# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Algorithms 11 and 13 and Operator 12: words and pairs, with one key per tuple.

Unlike the keys of one tuple, which are a set, these maps send a word as often as a text has it. So
they count occurrences, where ``wordcount`` and ``paircount`` count texts.
"""

from collections.abc import Iterable, Iterator

from examples.words import TWEETS, WORD_BITS, Vocabulary, words_of
from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, Reduction, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["PAIRS", "WORDS", "mapped_pairs", "mapped_words"]

FIRST, SECOND = (Field(name, WORD_BITS, signed=False) for name in ("first", "second"))
COUNT = Reduction("occurrences", "count")

WORDS = WindowedOperator(
    name="words_by_map", size=120, advance=60,
    fields=[FIRST], keys=[Key("first")], reductions=[COUNT],
)  # fmt: skip
PAIRS = WindowedOperator(
    name="pairs_by_map", size=120, advance=60,
    fields=[FIRST, SECOND], keys=[Key(["first", "second"])], reductions=[COUNT],
)  # fmt: skip


def mapped_words(texts: Iterable[tuple[int, str]], names: Vocabulary) -> Iterator[Arrival]:
    """Yield a tuple for each word of each (time, text): Algorithm 11."""
    for time, text in texts:
        for word in words_of(text):
            yield Arrival(time, {"first": names.number(word)})


def mapped_pairs(
    texts: Iterable[tuple[int, str]], names: Vocabulary, distance: int
) -> Iterator[Arrival]:
    """Yield a tuple for each two words at most ``distance`` apart: Algorithm 13."""
    for time, text in texts:
        numbers = [names.number(word) for word in words_of(text)]
        for i, first in enumerate(numbers):
            for second in numbers[i + 1 : i + 1 + distance]:
                yield Arrival(time, {"first": first, "second": second})


if __name__ == "__main__":
    vocabulary = Vocabulary()
    tweets = [(time, text) for time, _, text in TWEETS]
    for result in reference_results(WORDS, mapped_words(tweets, vocabulary)):
        print(result.timestamp, vocabulary.word(result.key[0]), *result.values)
