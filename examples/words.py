# SPDX-License-Identifier: Apache-2.0
"""Texts as tuples of numbers: what the examples about tweets share."""

from collections.abc import Iterable, Iterator

from host.operators.windowed import Field
from host.reference.operator import Arrival

__all__ = ["MOST", "TWEETS", "WORD_BITS", "WORD_FIELDS", "Vocabulary", "hashtags_of", "words_of"]

#: Most words of a text, or hashtags, that a tuple has room for.
MOST = 8
#: Bits of the number of a word. An accelerator has a row for each key, and two words are one key.
WORD_BITS = 6
#: The fields of a text: its words by number, how many there are, and its length in characters.
WORD_FIELDS = (
    *(Field(f"word{i}", bits=WORD_BITS, signed=False) for i in range(MOST)),
    Field("words", bits=4, signed=False),
    Field("chars", bits=9, signed=False),
)
#: A few tweets: minute of the day, user and text. Those before 10:00 are STRETCH's own example.
TWEETS = (
    (590, "B", "hello #pink"),
    (598, "C", "hi #red #pink"),
    (601, "A", "so blue"),
    (618, "D", "#red red again #red"),
    (664, "B", "good #pink night to you all"),
)


class Vocabulary:
    """Numbers for words, in the order in which they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        """Return the number of a word."""
        number = self._numbers.setdefault(word, len(self._numbers))
        if number >> WORD_BITS:
            raise ValueError(f"{word!r} is a word too many for numbers of {WORD_BITS} bits")
        return number

    def word(self, number: int) -> str:
        """Return the word of a number."""
        return list(self._numbers)[number]

    def arrivals(self, texts: Iterable[tuple[int, str, Iterable[str]]]) -> Iterator[Arrival]:
        """Yield the tuple of each (time, text, words), with the fields of ``WORD_FIELDS``."""
        for time, text, words in texts:
            numbers = [self.number(word) for word in words]
            if len(numbers) > MOST:
                raise ValueError(f"A tuple has room for {MOST} words, but {text!r} has more")
            padded = numbers + [0] * (MOST - len(numbers))
            fields = {f"word{i}": number for i, number in enumerate(padded)}
            yield Arrival(time, {**fields, "words": len(numbers), "chars": len(text)})


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def hashtags_of(text: str) -> list[str]:
    """Return the hashtags of a text, without their sign."""
    return [word[1:] for word in words_of(text) if word.startswith("#")]
