# SPDX-License-Identifier: Apache-2.0
"""The tables and streams that a query reads, their columns, and the schema of the result."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Int64s
from host.errors import UsageError, unknown_column
from host.reference.arrivals import Side
from host.reference.types import JoinType

__all__ = [
    "Input",
    "Supply",
    "as_table",
    "is_stream",
    "output_names",
    "output_schema",
    "plain_column",
    "plain_type",
    "require_column",
    "require_distinct",
    "schema_without_views",
    "without_views",
]

# Find the columns that a query names, and choose the names of the result's columns.
#
# A query must name a column exactly as its input does. Names of the result are compared without
# regard to case, as in Spark and SQL: a right column gets the suffix if a left column has the
# same name in any case. Columns of *one* input whose names differ only in case keep their names.


def require_distinct(names: Sequence[str], table: str) -> None:
    """Raise unless all columns of a table have different names; messages call it ``table``.

    Raises
    ------
    UsageError
        If a name repeats; the error names the first one.
    """
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise UsageError(
            f"{table[0].upper()}{table[1:]} has several columns called {repeated!r}; rename all "
            f"but one."
        )


def require_column(names: Sequence[str], name: str, table: str) -> None:
    """Raise unless exactly one column of a table has the name; messages call it ``table``.

    Raises
    ------
    UsageError
        If there is no such column, or there are several.
    """
    if name not in names:
        raise unknown_column(name, names, table=table)
    require_distinct([other for other in names if other == name], table)


def output_names(
    left: Sequence[str],
    right: Sequence[str],
    suffix: str,
    how: JoinType,
    behind: Sequence[str] = (),
) -> list[str]:
    """Return the result's column names: the left ones, then the right ones if the result has pairs.

    Parameters
    ----------
    left, right : sequence of str
        Column names of both inputs.
    suffix : str
        Text appended to a right name that the left input also has.
    how : JoinType
        Type of the join, which decides whether the result has pairs.
    behind : sequence of str
        Names of columns that the result has besides; they are checked, and not returned.

    Raises
    ------
    UsageError
        If a name repeats in an input, or would repeat in the result.
    """
    require_distinct(left, "the left input")
    require_distinct(right, "the right input")
    taken = {name.casefold() for name in left}
    chosen: dict[str, str] = {}  # from the result's casefolded name to the input's
    names = list(left)
    for name in right if how.has_pairs else ():
        given = name + suffix if name.casefold() in taken else name
        folded = given.casefold()
        if folded in taken or chosen.setdefault(folded, name.casefold()) != name.casefold():
            raise UsageError(
                f"The right column {name!r} would be called {given!r} in the answer, which is "
                f"taken (case does not matter); choose another suffix than {suffix!r}."
            )
        names.append(given)
    clash = {name.casefold() for name in names} & set(behind)
    if clash:
        raise UsageError(
            f"The answer would have two columns called {min(clash)!r} (case does not matter), one "
            f"of them the boundary of its window; rename that of the input."
        )
    return names


# The tables and streams that a join reads, and the schema of its result.

#: A table, or batches.
Input: TypeAlias = pa.Table | pa.RecordBatchReader | Iterable[pa.RecordBatch]

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

#: Rows in each batch that is gathered from a table whose rows are not in order.
GATHERED = 1 << 15


def is_stream(rows: Input) -> bool:
    """Return whether batches arrive one after another, as opposed to being in memory."""
    return not isinstance(rows, (pa.Table, list, tuple))


def as_table(rows: Input) -> pa.Table:
    """Return the rows as a table without views; gather batches if necessary.

    Raises
    ------
    UsageError
        If there is no batch, and therefore no schema, or something else among the batches.
    """
    if isinstance(rows, pa.RecordBatchReader):
        rows = rows.read_all()
    elif not isinstance(rows, pa.Table):
        batches = list(map(_batch, rows))
        if not batches:
            raise _without_schema()
        rows = pa.Table.from_batches(batches)
    return without_views(rows)


def _batch(given: object) -> pa.RecordBatch:
    """Return what an input has for a batch, if it is one."""
    if not isinstance(given, pa.RecordBatch):
        raise UsageError(
            f"An input of batches has a {type(given).__name__} among them; give batches of pyarrow "
            f"(pyarrow.RecordBatch), or a table, which pyarrow.Table.from_pylist makes of "
            f"dictionaries."
        )
    return given


def _without_schema() -> UsageError:
    return UsageError(
        "An input without any batch has no schema; give a pyarrow.RecordBatchReader or a table "
        "instead."
    )


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of the same values without views of texts and without runs, also inside."""
    types = pa.types
    if types.is_string_view(dtype):
        return pa.large_string()
    if types.is_binary_view(dtype):
        return pa.large_binary()
    if types.is_run_end_encoded(dtype):
        return plain_type(dtype.value_type)
    if types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, plain_type(dtype.value_type), dtype.ordered)
    if types.is_struct(dtype):
        return pa.struct(list(map(_plain, dtype.fields)))
    if types.is_map(dtype):
        return pa.map_(_plain(dtype.key_field), _plain(dtype.item_field), dtype.keys_sorted)
    if types.is_fixed_size_list(dtype):
        return pa.list_(_plain(dtype.value_field), dtype.list_size)
    if types.is_list(dtype):
        return pa.list_(_plain(dtype.value_field))
    return pa.large_list(_plain(dtype.value_field)) if types.is_large_list(dtype) else dtype


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types in place of others."""
    return pa.schema(map(_plain, schema), schema.metadata)


def plain_column(column: Column, dtype: pa.DataType) -> Column:
    """Return a column as one of a plain type."""
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    return column if column.type == dtype else column.cast(dtype)


def without_views(rows: Rows) -> Rows:
    """Return a table or a batch with plain types: Arrow does not take rows of others.

    Raises
    ------
    UsageError
        If Arrow does not make a column one of a plain type.
    """
    schema = schema_without_views(rows.schema)
    if schema.types == rows.schema.types:
        return rows
    columns = []
    for field, column in zip(schema, rows.columns, strict=True):
        try:
            columns.append(plain_column(column, field.type))
        except pa.ArrowNotImplementedError as error:
            raise UsageError(
                f"Column {field.name!r} is {column.type}, of which Arrow takes no rows; cast it to "
                f"{field.type}."
            ) from error
    return type(rows).from_arrays(columns, schema=schema)


class Supply:
    """The batches of an input, which some inputs can supply several times.

    Parameters
    ----------
    rows : pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        A reader or an iterator can be read once; any other iterable is iterated again.
    order : array of int64, optional
        For a table only: its row numbers in the wanted order.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the batches.

    Raises
    ------
    UsageError
        If there is no batch, and therefore no schema, or something else in place of the first one.
    """

    def __init__(self, rows: Input, order: Int64s | None = None) -> None:
        self._rows: Input = rows
        self._order = order
        self._once = False
        self._used = False
        if not is_stream(rows):
            self._rows = as_table(rows)
        if isinstance(self._rows, pa.Table):
            self.schema = self._rows.schema
        elif isinstance(self._rows, pa.RecordBatchReader):
            self.schema, self._once = schema_without_views(self._rows.schema), True
        else:
            batches = iter(self._rows)
            first = next(batches, None)
            if first is None:
                raise _without_schema()
            self.schema = schema_without_views(_batch(first).schema)
            if batches is self._rows:
                self._rows, self._once = chain([first], batches), True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return an iterator over the batches.

        Raises
        ------
        UsageError
            If the input can be read only once, and has been read; and, while batches are taken, if
            something else is among them.
        """
        if self._once and self._used:
            raise UsageError(
                "A reader or iterator of batches can be joined once, and it has been; give a "
                "table to join it again."
            )
        self._used = True
        if not isinstance(self._rows, pa.Table):
            return (without_views(_batch(rows)) for rows in self._rows)
        if self._order is None:
            return iter(self._rows.to_batches())
        return self._gathered(self._rows, self._order)

    @staticmethod
    def _gathered(table: pa.Table, order: Int64s) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(order), GATHERED):
            part = table.take(pa.array(order[begin : begin + GATHERED]))
            yield from part.combine_chunks().to_batches()


def output_schema(
    left: pa.Schema,
    right: pa.Schema,
    suffix: str = "_right",
    how: JoinType = JoinType.INNER,
    behind: Sequence[str] = (),
) -> pa.Schema:
    """Return the schema of a join: the left columns, then the right ones if the join has pairs.

    A column that is null where a row comes alone is nullable, even if it is not in the input.

    Raises
    ------
    UsageError
        If a name repeats in an input, or would repeat in the result even with the suffix; see
        :mod:`host.query.tables`.
    """
    names = output_names(left.names, right.names, suffix, how, behind)
    fields = [_nullable(field, how, Side.R) for field in left]
    if how.has_pairs:
        fields += [_nullable(field, how, Side.S) for field in right]
    return pa.schema(field.with_name(name) for field, name in zip(fields, names, strict=True))


def _nullable(field: pa.Field, how: JoinType, side: Side) -> pa.Field:
    return field.with_nullable(True) if how.nulls(side) else field
