# SPDX-License-Identifier: Apache-2.0
"""The words of a query: what each takes, and which word of before or of pandas it stands for.

Commands, functions for tables and functions of Spark use one vocabulary: ``time`` (the columns that
rows arrive by), ``on`` (columns that must be equal), ``band`` (bounded differences), ``within`` and
``rows`` (the window) and ``how``. A command has them as options, ``--time`` and so on. Here is what
may be written for a column, a pair of columns or a length, and what happens to another word.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import wraps
import inspect
import re
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast

from host.errors import UsageError
from host.query.quantities import Duration, as_duration, parse_duration

__all__ = [
    "PARTITIONS",
    "RENAMED",
    "Bound",
    "Columns",
    "Equalities",
    "Length",
    "Limit",
    "Renamed",
    "Sortedness",
    "Span",
    "Within",
    "as_length",
    "as_span",
    "column_pair",
    "equal_columns",
    "is_pair",
    "listed_columns",
    "require_words",
    "takes_words",
    "as_text",
]

# What may be written for the words.

#: A column, which both inputs have by this name, or a (left, right) pair of columns.
Columns: TypeAlias = str | tuple[str, str]

#: Equal columns: one name, or a list of names and of (left, right) pairs.
Equalities: TypeAlias = str | Sequence[str | tuple[str, str]] | None

#: Bound of a difference: a number for numeric columns, a duration for temporal ones, or None.
Bound: TypeAlias = int | float | Decimal | Fraction | Duration | timedelta | None

#: A bound of a difference, also as text.
Limit: TypeAlias = Bound | str

#: A length of time: a duration for temporal columns, a whole number for columns of integers.
Span: TypeAlias = int | Duration

#: A length of time, also as text (``"180min"``) or as Python's own duration.
Length: TypeAlias = Span | timedelta | str

#: The width of a window, or the two ends of the difference left - right.
Within: TypeAlias = Length | tuple[Length, Length]

#: Declares each partition of an input sorted by itself.
PARTITIONS: Final = "partitions"

#: What is declared sorted: the inputs, nothing, or each partition of the inputs.
Sortedness: TypeAlias = bool | Literal["partitions"]


def column_pair(columns: object, word: str) -> tuple[str, str]:
    """Return a (left, right) pair of columns; one name is that of both.

    Raises
    ------
    UsageError
        If it is neither; the error names the word.
    """
    if isinstance(columns, str):
        return columns, columns
    if is_pair(columns):
        left, right = cast("Sequence[str]", columns)
        return left, right
    raise UsageError(
        f"{word} must be a column or a (left, right) pair of columns, not {columns!r}."
    )


def listed_columns(columns: Any, word: str) -> Sequence[Any]:
    """Return what may be no column, one, or a list of columns, as a list.

    Raises
    ------
    UsageError
        If ``columns`` are none of these; the error names the word.
    """
    if columns is None:
        return ()
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, Sequence):
        raise UsageError(f"{word} must be a column or a list of columns, not {columns!r}.")
    return columns


def equal_columns(columns: object, word: str) -> tuple[tuple[str, str], ...]:
    """Return (left, right) pairs of columns that must be equal.

    Raises
    ------
    UsageError
        If ``columns`` are no :data:`Equalities`; the error names the word.
    """
    columns = listed_columns(columns, word)
    if isinstance(columns, tuple) and is_pair(columns):
        raise UsageError(
            f"{word}={columns!r} could mean one pair or two columns; write [{columns!r}] or "
            f"{list(columns)!r}."
        )
    pairs = []
    for entry in columns:
        if isinstance(entry, str):
            pairs.append((entry, entry))
        elif is_pair(entry):
            pairs.append((entry[0], entry[1]))
        else:
            raise UsageError(f"{word} lists columns and (left, right) pairs, not {entry!r}.")
    return tuple(pairs)


def as_text(given: object, word: str) -> str:
    """Return a name or a suffix, which is a text that a column can be called by.

    Raises
    ------
    UsageError
        If it is none; the error names the word.
    """
    if not isinstance(given, str):
        raise UsageError(f"{word} takes texts, not {given!r}.")
    if re.search("[\ud800-\udfff]", given):
        raise UsageError(f"{word} takes texts, but {given!r} has half of a character.")
    return given


def is_pair(value: object) -> bool:
    """Return whether a value is a pair of names."""
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(isinstance(name, str) for name in value)
    )


def as_length(value: object, word: str, given: object = None, *, least: int = 0) -> Span:
    """Return a whole number or a duration that a value is, or is made of.

    Parameters
    ----------
    value : int, Duration, timedelta or str
        The value.
    word : str
        The word that it was given for, for messages.
    given : object, optional
        All that was given for the word, if the value is a part of it.
    least : int
        What a message says that lengths are at least.

    Raises
    ------
    UsageError
        If it is neither.
    """
    if isinstance(value, str):
        return parse_duration(value, word)
    if isinstance(value, timedelta):
        return as_duration(value)
    if isinstance(value, Duration):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise _no_length(value if given is None else given, word, least)
    return int(value)


def as_span(value: object, word: str, *, least: int = 0) -> Span:
    """Return a length, as :func:`as_length` does, that is at least so long.

    Raises
    ------
    UsageError
        If it is none, or shorter.
    """
    span = as_length(value, word, least=least)
    if (span.nanoseconds if isinstance(span, Duration) else span) < least:
        raise _no_length(value, word, least)
    return span


def _no_length(given: object, word: str, least: int) -> UsageError:
    ends = ", or (low, high) of such that may be negative" if word == "within" else ""
    shown = f"{given}" if isinstance(given, Duration) else f"{given!r}"
    return UsageError(
        f"{word} must be a duration or a whole number of at least {least}{ends}, not {shown}."
    )


# Words of before, and those of pandas, that are written in place of the kit's.


class Renamed(NamedTuple):
    """Word that the kit does not have, with what it is called here.

    Parameters
    ----------
    words : tuple of str
        The kit's word, or the words that share its meaning.
    meaning : str
        What they mean.
    """

    words: tuple[str, ...]
    meaning: str

    def message(self, word: str, mark: str = "") -> str:
        """Return the sentence that says so; ``mark`` stands before each word, as ``--``."""
        ours = " or ".join(f"{mark}{own}" for own in self.words)
        return f"{mark}{word} is called {ours} here: {self.meaning}."


_TIME = Renamed(("time",), "the columns that rows arrive by")
_EQUAL = Renamed(("on",), "the columns that must be equal")
_NAMED = Renamed(
    ("time", "on"),
    "time is the (left, right) pair of columns that rows arrive by, and on lists the columns or "
    "(left, right) pairs that must be equal",
)

#: The words of before and of pandas, and what they are called.
RENAMED: Mapping[str, Renamed] = {
    "order": _TIME,
    "equal": _EQUAL,
    "by": _EQUAL,
    "keys": _EQUAL,
    "left_by": _EQUAL,
    "right_by": _EQUAL,
    "left_on": _NAMED,
    "right_on": _NAMED,
    "tolerance": Renamed(("within",), "how far apart in time two rows may be"),
    "window": Renamed(("within", "rows"), "how far apart in time rows may be, or how many rows"),
    "terms": Renamed(("on", "band"), "columns that must be equal, and bounded differences"),
}

Function = TypeVar("Function", bound=Callable[..., Any])


def takes_words(function: Function) -> Function:
    """Decorate a function that takes words of a query, to answer other words of :data:`RENAMED`.

    A word of before is then a :class:`~host.errors.UsageError` that says the kit's word, and so is
    a missing ``time``.
    """
    words = inspect.signature(function).parameters
    needs_time = "time" in words and words["time"].default is inspect.Parameter.empty

    @wraps(function)
    def checked(*values: Any, **given: Any) -> Any:
        require_words(given, words, needs_time=needs_time)
        return function(*values, **given)

    return cast("Function", checked)


def require_words(given: Collection[str], words: Collection[str], *, needs_time: bool) -> None:
    """Raise if one of the ``given`` words is of :data:`RENAMED`, or a necessary one is missing.

    Parameters
    ----------
    given : collection of str
        The words that a caller has written.
    words : collection of str
        Those that there are.
    needs_time : bool
        Whether ``time`` must be among them.
    """
    for word in given:
        if word in RENAMED and word not in words:
            raise UsageError(RENAMED[word].message(word))
    if needs_time and "time" not in given:
        raise UsageError(f"time is missing: {_TIME.meaning}; on are columns that are equal.")
