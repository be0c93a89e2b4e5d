# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 14, paircount: how many texts have two words at most ``DISTANCE`` apart."""

from examples.words import MOST, TWEETS, WORD_FIELDS, Vocabulary, words_of
from host.operators.meaning import reference_results
from host.operators.windowed import Key, Reduction, WindowedOperator

__all__ = ["DISTANCE", "OPERATOR"]

#: The seed's B: 3 in its experiment L, 10 in M; H takes all pairs of a text.
DISTANCE = 3

OPERATOR = WindowedOperator(
    name="paircount",
    size=120,
    advance=60,
    fields=WORD_FIELDS,
    keys=[
        Key([f"word{i}", f"word{j}"], when=f"words > {j}")
        for i in range(MOST)
        for j in range(i + 1, min(i + DISTANCE + 1, MOST))
    ],
    key_names=["first", "second"],
    reductions=[Reduction("texts", "count")],
)

if __name__ == "__main__":
    names = Vocabulary()
    tuples = names.arrivals((time, text, words_of(text)) for time, _, text in TWEETS)
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, *(names.word(part) for part in result.key), *result.values)
