# SPDX-License-Identifier: Apache-2.0
"""Errors of rows that are out of order, have no place in it, or are repeated."""

from collections.abc import Mapping, Sequence
import reprlib

from host.errors.base import UsageError

__all__ = [
    "DisorderError",
    "DuplicateKeyError",
    "FalseDistinctError",
    "FalseOrderError",
    "NullOrderError",
]

#: Largest number of columns of a row that a message shows.
_SHOWN = 6


class DisorderError(UsageError):
    """Time goes backwards in an input that was declared sorted.

    Parameters
    ----------
    where : object
        Side or column.
    position : int
        Row, counted from 0, whose value is less than the value before it.
    previous, value : object
        The two values.
    partition : int, optional
        Partition of the input in which ``position`` counts, if there are several.
    source : str, optional
        What that partition is called, such as ``"file 'a.parquet'"``, if it has a name.
    """

    def __init__(
        self,
        where: object,
        position: int,
        previous: object,
        value: object,
        *,
        partition: int | None = None,
        source: str | None = None,
    ) -> None:
        self.where = where
        self.position = position
        self.previous = previous
        self.value = value
        self.partition = partition
        of_partition = "" if partition is None else f" of the input's partition {partition}"
        if source is not None:
            of_partition = f" of {source}"
        super().__init__(
            f"Time goes backwards in {_place(where)}: row {position}{of_partition} (the first is "
            f"0) has {value} after {previous}; sort the input by its order column."
        )


class FalseOrderError(UsageError):
    """Rows of a source are not sorted by the columns that it was declared to be sorted by.

    Parameters
    ----------
    source : str
        The source.
    by : sequence of str
        The columns.
    position : int
        Row, counted from 0, that is less than the row before it.
    previous, row : mapping
        Values of the columns in both rows.
    part : int, optional
        Part of the source in which ``position`` counts, if there are several.
    """

    def __init__(
        self,
        source: str,
        by: Sequence[str],
        position: int,
        previous: Mapping[str, object],
        row: Mapping[str, object],
        *,
        part: int | None = None,
    ) -> None:
        self.source = source
        self.by = tuple(by)
        self.position = position
        self.previous = dict(previous)
        self.row = dict(row)
        self.part = part
        place = "" if part is None else f" of part {part}"
        super().__init__(
            f"The rows of {source} are declared to be sorted by {', '.join(by)}, but row {position}"
            f"{place} (the first is 0) has {_shown(row)} after {_shown(previous)}; sort them "
            f"first, or do not declare it."
        )


class FalseDistinctError(UsageError):
    """Rows of a source agree in all columns that it was declared to be distinct by.

    Parameters
    ----------
    source : str
        The source.
    by : sequence of str
        The columns.
    position : int
        Row, counted from 0, whose values an earlier row has too.
    row : mapping
        Values of the columns.
    part : int, optional
        Part of the source in which ``position`` counts, if there are several.
    """

    def __init__(
        self,
        source: str,
        by: Sequence[str],
        position: int,
        row: Mapping[str, object],
        *,
        part: int | None = None,
    ) -> None:
        self.source = source
        self.by = tuple(by)
        self.position = position
        self.row = dict(row)
        self.part = part
        place = "" if part is None else f" of part {part}"
        super().__init__(
            f"The rows of {source} are declared to be distinct by {', '.join(by)}, but row "
            f"{position}{place} (the first is 0) has {_shown(row)} as another row has; use "
            f"distinct({', '.join(map(repr, by))}), or do not declare it."
        )


class NullOrderError(UsageError):
    """The column that gives the order of arrival holds a null.

    Parameters
    ----------
    column : str
        The column.
    position : int, optional
        Row of the first null, counted from 0, if the user can look up row numbers.
    row : Mapping of str to object
        The row itself, as far as its columns are available.
    """

    def __init__(
        self, column: str, position: int | None = None, row: Mapping[str, object] | None = None
    ) -> None:
        self.column = column
        self.position = position
        places = [] if position is None else [f"row {position} (the first is 0)"]
        if row:
            places.append(f"the row with {_shown(row)}")
        super().__init__(
            f"Order column {column!r} is null in {', '.join(places)}; a row without a place in "
            f"time cannot be joined: drop it, or fill the column."
        )


class DuplicateKeyError(UsageError):
    """A row is repeated where all rows must differ.

    Parameters
    ----------
    key : object
        The compared values.
    row : int
        Number of the second of the equal rows, counted from 0.
    """

    def __init__(self, key: object, row: int) -> None:
        self.key = key
        self.row = row
        super().__init__(
            f"Row {row} (the first is 0) repeats {key!r}; remove the duplicates, or leave them out "
            f"with fail_on_duplicate=False."
        )


def _place(where: object) -> str:
    name = getattr(where, "name", None)
    return f"column {where!r}" if name is None else f"side {name}"


def _shown(row: Mapping[str, object]) -> str:
    """Return the first columns of a row with their values in one line; long values are cut."""
    shown = [f"{name}={_value(value)}" for name, value in list(row.items())[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(row) > _SHOWN else shown)


def _value(value: object) -> str:
    plain = value is None or isinstance(value, (str, bytes, int, float, list, dict))
    text = "null" if value is None else reprlib.repr(value) if plain else str(value)
    return " ".join(text.split())
