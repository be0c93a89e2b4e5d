# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 14 for texts of many words: wordcount, and paircount L, M and H."""

from host.windowed import Field, Key, Reduction, WindowedOperator

__all__ = ["DISTANCES", "counting", "text_fields"]

#: Largest distance of two words that are a pair (the seed's B); None counts words.
DISTANCES = {"wordcount": None, "paircount L": 3, "paircount M": 10, "paircount H": 1 << 16}


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
