# SPDX-License-Identifier: Apache-2.0
"""The operators of the kit."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
import inspect
from typing import Any

import numpy as np
import pyarrow as pa

from host.errors import UnsupportedTypeError, UsageError
from host.operators.operator import Operator, Submitted
from host.operators.rows import CopyCounters, Rows

__all__ = ["Filter", "FlatMap", "Map", "MapBatches", "Peek", "Project", "Update"]


def _columns_of(function: Callable[..., Any], columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that a function takes: the given ones, or its parameters' names."""
    if columns is not None:
        return tuple(columns)
    parameters = inspect.signature(function).parameters.values()
    names = tuple(each.name for each in parameters if each.default is inspect.Parameter.empty)
    if not names or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        raise UsageError(
            f"Function {_name(function)} does not say which columns it takes; name its parameters "
            f"after them, or give columns=[...]."
        )
    return names


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


class Filter(Operator):
    """Submit the rows for which a function of columns is true.

    Parameters
    ----------
    function : callable
        Takes Arrow arrays and returns booleans (Arrow or NumPy); null counts as False.
    columns : sequence of str, optional
        Columns that the function takes; by default those named like its parameters.
    """

    def __init__(self, function: Callable[..., Any], columns: Sequence[str] | None = None) -> None:
        self._function = function
        self._columns = _columns_of(function, columns)

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        rows.keep(self._function(*(rows.column(name) for name in self._columns)))
        yield rows if rows.num_rows else None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return f"filter({', '.join(self._columns)})"


class Map(Operator):
    """Add or replace a column with the values of a function of columns.

    Parameters
    ----------
    name : str
        Name of the column.
    function : callable
        Takes Arrow arrays and returns as many values (Arrow or NumPy). It is also called with
        empty arrays, to find the type.
    columns : sequence of str, optional
        Columns that the function takes; by default those named like its parameters.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> None:
        self.name = name
        self._function = function
        self._columns = _columns_of(function, columns)

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        rows.put(self.name, self._function(*(rows.column(name) for name in self._columns)))
        yield rows

    def __str__(self) -> str:
        return f"map({self.name} <- {', '.join(self._columns)})"


class Project(Operator):
    """Submit some of the columns, possibly under other names.

    Parameters
    ----------
    columns : mapping of str to str
        Old names by new names, in the wanted order.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = dict(columns)

    def apply(self, rows: Rows) -> Submitted:
        yield rows.project(self.columns)

    def __str__(self) -> str:
        names = (new if new == old else f"{new} = {old}" for new, old in self.columns.items())
        return f"select({', '.join(names)})"


class Update(Operator):
    """Change a column in place.

    Parameters
    ----------
    name : str
        Name of a column of numbers, dates or times, without nulls.
    function : callable
        Takes the column as a NumPy array and writes into it; its result is ignored.
    """

    mutates_input = True

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name = name
        self._function = function

    def apply(self, rows: Rows) -> Submitted:
        self._function(rows.writable(self.name))
        yield rows

    def schema(self, schema: pa.Schema) -> pa.Schema:
        kind = schema.field(self.name).type
        if not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
            raise UnsupportedTypeError(self.name, kind, "numbers, dates, times")
        values = np.zeros(0, kind.to_pandas_dtype())
        index = schema.get_field_index(self.name)
        return schema.set(index, pa.field(self.name, pa.array(values).type))

    def __str__(self) -> str:
        return f"update({self.name})"


class MapBatches(Operator):
    """Replace each batch by another, with any number of rows.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch and returns one. It is also called with an empty one, to find the
        schema.
    """

    def __init__(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._function = function

    def apply(self, rows: Rows) -> Submitted:
        yield Rows.of_batch(self._function(rows.batch()), rows.counters)

    def __str__(self) -> str:
        return f"map_batches({_name(self._function)})"


class FlatMap(Operator):
    """Replace each batch by any number of others.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch and returns an iterable of them, which is read only as far as batches
        are wanted. A generator that is stopped early is closed.
    output : Schema
        Schema of all returned batches.
    """

    def __init__(
        self,
        function: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]],
        output: pa.Schema,
    ) -> None:
        self._function = function
        self._output = output

    def apply(self, rows: Rows) -> Submitted:
        batches = iter(self._function(rows.batch()))
        try:
            yield from self._checked(batches, rows.counters)
        finally:
            # Close a generator that is stopped early now, instead of when it is collected.
            if isinstance(batches, Generator):
                batches.close()

    def _checked(self, batches: Iterator[pa.RecordBatch], counters: CopyCounters) -> Submitted:
        for batch in batches:
            if batch.schema != self._output:
                raise UsageError(
                    f"Function {_name(self._function)} of flat_map returned columns "
                    f"{batch.schema.to_string()!r}, not the declared "
                    f"{self._output.to_string()!r}."
                )
            yield Rows.of_batch(batch, counters) if batch.num_rows else None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return self._output

    def __str__(self) -> str:
        return f"flat_map({_name(self._function)})"


class Peek(Operator):
    """Pass each batch to a function, which may keep it, and pass the rows on.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch; its result is ignored.
    """

    retains = True

    def __init__(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        self._function = function

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        self._function(rows.batch())
        yield rows

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return f"peek({_name(self._function)})"
