# SPDX-License-Identifier: Apache-2.0
"""Rows do not come in the order that they must have, or come twice."""

from host.errors.base import UsageError

__all__ = ["DisorderError", "DuplicateKeyError", "NullOrderError"]


class DisorderError(UsageError):
    """Time goes backwards in an input that was declared sorted.

    Parameters
    ----------
    where : object
        Side or column.
    position : int
        Row (from 0) whose value is less than the one before it.
    previous, value : object
        The two values.
    """

    def __init__(self, where: object, position: int, previous: object, value: object) -> None:
        self.where = where
        self.position = position
        self.previous = previous
        self.value = value
        super().__init__(
            f"Time goes backwards in {_place(where)}: row {position} (the first is 0) has "
            f"{value} after {previous}; sort the input by its order column."
        )


class NullOrderError(UsageError):
    """The column that gives the order of arrival holds a null.

    Parameters
    ----------
    column : str
        The column.
    position : int
        Row (from 0) of the first null.
    """

    def __init__(self, column: str, position: int) -> None:
        self.column = column
        self.position = position
        super().__init__(
            f"Order column {column!r} is null in row {position} (the first is 0); a row without a "
            f"place in time cannot be joined: drop it, or fill the column."
        )


class DuplicateKeyError(UsageError):
    """A row stands twice where every row must be different.

    Parameters
    ----------
    key : object
        The values that are compared.
    row : int
        Number of the second of the equal rows; the first row is 0.
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
