# SPDX-License-Identifier: Apache-2.0
"""The tables that go into a join, and the schema of the one that comes out."""

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa

from host.errors import UsageError

__all__ = ["Input", "as_table", "output_schema"]

#: A table, or the batches of one.
Input: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]


def as_table(rows: Input) -> pa.Table:
    """Gather batches into a table."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    return pa.Table.from_batches(list(rows))


def output_schema(left: pa.Schema, right: pa.Schema, suffix: str = "_right") -> pa.Schema:
    """Return the schema of a result.

    Raises
    ------
    UsageError
        If a name would stand twice even with the suffix.
    """
    names, taken = set(left.names), list(left)
    for column in right:
        name = column.name + suffix if column.name in left.names else column.name
        if name in names:
            raise UsageError(
                f"The right column {column.name!r} would be called {name!r} in the result, which "
                f"is taken; choose another suffix than {suffix!r}."
            )
        names.add(name)
        taken.append(column.with_name(name))
    return pa.schema(taken)
