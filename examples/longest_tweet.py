# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 9: the longest tweet of each hashtag, over an hour, every half an hour.

A tweet has one key for each of its hashtags, and is sent once.
"""

from examples.words import MOST, TWEETS, WORD_FIELDS, Vocabulary, hashtags_of
from host.operators.meaning import reference_results
from host.operators.windowed import Key, Reduction, WindowedOperator

__all__ = ["OPERATOR"]

OPERATOR = WindowedOperator(
    name="longest_tweet",
    size=60,
    advance=30,
    fields=WORD_FIELDS,
    keys=[Key(f"word{i}", when=f"words > {i}") for i in range(MOST)],
    key_names=["hashtag"],
    reductions=[Reduction("longest", "max", "chars")],
)

if __name__ == "__main__":
    names = Vocabulary()
    tuples = names.arrivals((time, text, hashtags_of(text)) for time, _, text in TWEETS)
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, names.word(result.key[0]), *result.values)
