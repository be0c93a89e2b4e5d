# SPDX-License-Identifier: Apache-2.0
"""Errors of columns, values and predicates that an input lacks or a device cannot compare."""

from collections.abc import Sequence
from difflib import get_close_matches

from host.errors.base import UsageError

__all__ = [
    "KeyRangeError",
    "PredicateError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "UntypedColumnError",
]

#: Largest number of column names that a message lists.
_LISTED = 20


class UnknownColumnError(UsageError):
    """A table has no column of the given name.

    Parameters
    ----------
    column : str
        The name asked for.
    columns : Sequence of str
        The columns that the table has.
    table : str
        Name of the table that the user knows.
    """

    def __init__(self, column: str, columns: Sequence[str], *, table: str = "the table") -> None:
        self.column = column
        self.columns = tuple(columns)
        self.table = table
        listing = ", ".join(repr(name) for name in self.columns[:_LISTED]) or "none"
        if len(self.columns) > _LISTED:
            listing += f" and {len(self.columns) - _LISTED} more"
        super().__init__(
            f"There is no column {column!r} in {table}{_near(column, self.columns)}; "
            f"its columns: {listing}."
        )


class UnsupportedTypeError(UsageError):
    """The type of a column cannot be used as the query requires.

    Parameters
    ----------
    column : str
        The column.
    type_name : object
        Type of the column.
    supported : str
        Types that can be used.
    """

    def __init__(self, column: str, type_name: object, supported: str) -> None:
        self.column = column
        self.type_name = str(type_name)
        self.supported = supported
        super().__init__(
            f"Column {column!r} has type {self.type_name}, which cannot be used here; "
            f"cast it to one of: {supported}."
        )


class UntypedColumnError(UnsupportedTypeError):
    """A column has no type, because no row has a value in it.

    Parameters
    ----------
    column : str
        The column.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.type_name = "null"
        self.supported = ""
        UsageError.__init__(
            self,
            f"Column {column!r} has no type, because no row has a value in it: a CSV or JSON file "
            f"tells the types of its columns by their values only; add a row that has a value "
            f"there, or give the column a type, by a cast or in a Parquet file.",
        )


class KeyRangeError(UsageError):
    """A value does not fit a field of the accelerator, or 64 bits.

    Parameters
    ----------
    column : str
        Column of the value.
    value : object
        The value, or the span of the column's values.
    low, high : int
        Smallest and largest value that fit.
    remedy : str
        What the user can do.
    row : int, optional
        Row of the value, counted from 0 over the whole stream.
    of : str, optional
        What the range is one of; by default, of 64 bits if it is as large, else of a field.
    """

    def __init__(
        self,
        column: str,
        value: object,
        low: int,
        high: int,
        *,
        remedy: str = "use a bundle with a wider field",
        row: int | None = None,
        of: str | None = None,
    ) -> None:
        self.column = column
        self.value = value
        self.low = low
        self.high = high
        self.remedy = remedy
        self.row = row
        place = "" if row is None else f" in row {row} (the first is 0)"
        if of is None:
            # No accelerator is to blame for a range that no field exceeds.
            of = "64 bits" if high - low >= (1 << 64) - 2 else "the accelerator's field"
        super().__init__(
            f"Column {column!r} holds {value}{place}, outside the range {low} .. {high} of {of}; "
            f"{remedy}."
        )


class PredicateError(UsageError):
    """A predicate cannot be loaded, or names a field that the tuples do not have."""


def _near(column: str, columns: Sequence[str]) -> str:
    """Return a hint at the column that may be meant, if one is spelled much like ``column``."""
    spelled = {name.strip().casefold(): name for name in columns}
    same = spelled.get(column.strip().casefold())
    if same is not None:
        rule = "spaces" if same.strip() == column.strip() else "upper and lower case"
        return f", but there is {same!r}: {rule} count in names, so write {same!r}"
    close = get_close_matches(column.casefold(), list(spelled), n=1)
    return f"; perhaps {spelled[close[0]]!r} is meant" if close else ""
