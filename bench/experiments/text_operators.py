# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operators 14 and 9 for texts: wordcount, paircount L, M and H, and longest tweet."""

from host.operators.windowed import Field, Key, Reduction, WindowedOperator

__all__ = ["DISTANCES", "KINDS", "LONGEST", "counting", "longest", "operator_of", "text_fields"]

#: Largest distance of two words that are a pair (the seed's B); None counts words.
DISTANCES = {"wordcount": None, "paircount L": 3, "paircount M": 10, "paircount H": 1 << 16}
#: What finds the longest tweet of each hashtag; the words of its texts are hashtags.
LONGEST = "longest tweet"
#: All operators.
KINDS = (*DISTANCES, LONGEST)
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


def operator_of(kind, *, most, bits):
    """Return the operator of one of :data:`KINDS`."""
    if kind == LONGEST:
        return longest(most=most, bits=bits)
    return counting(kind, most=most, bits=bits)
