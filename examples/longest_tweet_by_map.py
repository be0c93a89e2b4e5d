# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Algorithm 7 and Operator 8: the longest tweet of each hashtag, with one key per tuple.

The map before the aggregate sends a tweet once for each of its hashtags. The answer is that of
``longest_tweet``, which sends every tweet once.
"""

from collections.abc import Iterable, Iterator

from examples.words import TWEETS, WORD_BITS, Vocabulary, hashtags_of
from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, Reduction, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["OPERATOR", "mapped"]

OPERATOR = WindowedOperator(
    name="longest_tweet_by_map",
    size=60,
    advance=30,
    fields=[Field("hashtag", bits=WORD_BITS, signed=False), Field("chars", bits=9, signed=False)],
    keys=[Key("hashtag")],
    reductions=[Reduction("longest", "max", "chars")],
)


def mapped(tweets: Iterable[tuple[int, str, str]], names: Vocabulary) -> Iterator[Arrival]:
    """Yield a tuple for each hashtag of each (time, user, text)."""
    for time, _, text in tweets:
        for hashtag in hashtags_of(text):
            yield Arrival(time, {"hashtag": names.number(hashtag), "chars": len(text)})


if __name__ == "__main__":
    vocabulary = Vocabulary()
    for result in reference_results(OPERATOR, mapped(TWEETS, vocabulary)):
        print(result.timestamp, vocabulary.word(result.key[0]), *result.values)
