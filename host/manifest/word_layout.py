# SPDX-License-Identifier: Apache-2.0
"""Layouts of words, and the compared fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SECOND", "KeyField", "Word", "WordField"]

#: Prefix of the names of fields that belong to the second result in a word.
SECOND = "two."


@dataclass(frozen=True)
class WordField:
    """Place of a field in a word; zero bits wide if the accelerator lacks the field."""

    offset: int
    bits: int
    signed: bool = False


@dataclass(frozen=True)
class Word:
    """Layout of an input or result word."""

    bits: int
    fields: Mapping[str, WordField]

    @property
    def columns(self) -> int:
        """Number of 64-bit numbers that hold one word."""
        return max(1, -(-self.bits // 64))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Word":
        """Read a layout from its part of a manifest."""
        fields = {name: WordField(**place) for name, place in values["fields"].items()}
        return cls(values["bits"], fields)

    def __getitem__(self, name: str) -> WordField:
        return self.fields[name]


@dataclass(frozen=True)
class KeyField:
    """A compared field: its name, width in bits and signedness, and the range of its integers."""

    name: str
    bits: int
    signed: bool = True

    @property
    def low(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Largest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1
