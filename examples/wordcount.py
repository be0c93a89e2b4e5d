# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 14, wordcount: how many texts of a window have each word."""

from examples.words import MOST, TWEETS, WORD_FIELDS, Vocabulary, words_of
from host.operators.meaning import reference_results
from host.operators.windowed import Key, Reduction, WindowedOperator

__all__ = ["OPERATOR"]

OPERATOR = WindowedOperator(
    name="wordcount",
    size=120,
    advance=60,
    fields=WORD_FIELDS,
    keys=[Key(f"word{i}", when=f"words > {i}") for i in range(MOST)],
    key_names=["word"],
    reductions=[Reduction("texts", "count")],
)

if __name__ == "__main__":
    names = Vocabulary()
    tuples = names.arrivals((time, text, words_of(text)) for time, _, text in TWEETS)
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, names.word(result.key[0]), *result.values)
