# SPDX-License-Identifier: Apache-2.0
"""Sources of rows, which are bound when a terminal operation begins."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from host.errors import UsageError
from host.files.reading import common_schema, conformed, int96_unit, open_parquet
from host.pipeline.flags import Flag, Traits
from host.pipeline.splits import Split, distinct_as_declared, in_declared_order
from host.query.column_names import require_column
from host.query.tables import without_views
from host.streams.sorted_sources import merge_sorted

__all__ = [
    "BatchSource",
    "Bound",
    "ParquetSource",
    "SortedParquetSource",
    "Source",
    "TableSource",
]


@dataclass(frozen=True)
class Bound:
    """A source that has been bound to its data.

    Parameters
    ----------
    schema : Schema
        Schema of all batches.
    traits : Traits
        Known properties of the rows.
    splits : sequence of callable
        Parts that can be read independently; they are in order if the source is ORDERED.
    """

    schema: pa.Schema
    traits: Traits
    splits: Sequence[Split]

    def checked(self, source: str, *, order: bool = True) -> "Bound":
        """Return the same, but rows that are not as declared raise an error when read.

        Parameters
        ----------
        source : str
            Name of the source in the error, which is :exc:`~host.errors.FalseOrderError` or
            :exc:`~host.errors.FalseDistinctError`.
        order : bool
            Whether to check the order; where whoever reads the rows does it, it is left to them.
        """
        splits = self.splits
        if self.traits.distinct_by:
            splits = distinct_as_declared(splits, self.traits.distinct_by, source)
        if self.traits.sorted_by and order:
            splits = in_declared_order(splits, self.traits.sorted_by, source)
        return replace(self, splits=splits)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches, split after split."""
        for split in self.splits:
            yield from split()


class Source(ABC):
    """A supplier of rows.

    Attributes
    ----------
    traits : Traits
        Declared properties, before any data has been read.
    """

    traits: Traits = Traits()

    @abstractmethod
    def bind(self) -> Bound:
        """Read the properties of the data; called when a terminal operation starts, not before."""

    @abstractmethod
    def __str__(self) -> str: ...


def _declared(flags: Flag, sorted_by: Sequence[str], distinct_by: Sequence[str]) -> Traits:
    if sorted_by:
        flags |= Flag.SORTED
    if distinct_by:
        flags |= Flag.DISTINCT
    return Traits(flags, None, tuple(sorted_by), tuple(distinct_by))


class TableSource(Source):
    """Source of a table, or of a function that returns one: SIZED, ORDERED and splittable.

    Parameters
    ----------
    table : Table or callable
        The table. A function is called at the start of each terminal operation, which reads the
        table that it returns.
    sorted_by, distinct_by : sequence of str
        Columns that the rows are declared to be sorted by, or to be distinct in. Rows that are not
        raise an error when they are read; to find repeated ones, the values of ``distinct_by`` are
        kept.
    split_rows : int
        Number of rows in a part.
    """

    def __init__(
        self,
        table: pa.Table | Callable[[], pa.Table],
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
        split_rows: int = 1 << 20,
    ) -> None:
        self._table = table
        self._split_rows = split_rows
        self.traits = _declared(Flag.SIZED | Flag.ORDERED, sorted_by, distinct_by)

    def bind(self) -> Bound:
        table = without_views(self._table() if callable(self._table) else self._table)
        traits = replace(self.traits, rows=table.num_rows)
        starts = range(0, table.num_rows, self._split_rows)
        splits = [table.slice(start, self._split_rows).to_batches for start in starts]
        return Bound(table.schema, traits, splits)

    def __str__(self) -> str:
        rows = "late" if callable(self._table) else f"{self._table.num_rows} rows"
        return f"table({rows})"


class BatchSource(Source):
    """Source of batches that a function supplies, of unknown number: ORDERED, in one part.

    Parameters
    ----------
    supply : callable
        Returns the batches; called once by every terminal operation.
    schema : Schema
        Schema of all batches.
    sorted_by, distinct_by : sequence of str
        As for :class:`TableSource`.
    """

    def __init__(
        self,
        supply: Split,
        schema: pa.Schema,
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
    ) -> None:
        self._supply = supply
        self._schema = schema
        self.traits = _declared(Flag.ORDERED, sorted_by, distinct_by)

    def bind(self) -> Bound:
        schema = without_views(self._schema.empty_table()).schema
        return Bound(schema, self.traits, [self._of_one_schema])

    def _of_one_schema(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self._supply()):
            if not batch.schema.equals(self._schema):
                raise UsageError(
                    f"Batch {number} (the first is 0) has columns {batch.schema.to_string()!r}, "
                    f"not the declared {self._schema.to_string()!r}."
                )
            yield without_views(batch)

    def __str__(self) -> str:
        return f"batches({', '.join(self._schema.names)})"


class ParquetSource(Source):
    """Source of Parquet files: SIZED and ORDERED, with a part per row group, read in batches.

    Parameters
    ----------
    paths : path or sequence of paths
        Paths of the files, in order.
    columns : sequence of str, optional
        Columns to read; by default all.
    sorted_by, distinct_by : sequence of str
        As for :class:`TableSource`.
    rows : int
        Largest number of rows in a batch.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        columns: Sequence[str] | None = None,
        sorted_by: Sequence[str] = (),
        distinct_by: Sequence[str] = (),
        rows: int = 1 << 16,
    ) -> None:
        if isinstance(paths, (str, Path)):
            paths = [paths]
        self._paths = [Path(each) for each in paths]
        self._columns = None if columns is None else list(columns)
        self._rows = rows
        self.traits = _declared(Flag.SIZED | Flag.ORDERED, sorted_by, distinct_by)

    def bind(self) -> Bound:
        schemas, rows = [], 0
        groups: list[tuple[Path, int]] = []
        ranges: list[dict[str, tuple[Any, Any]]] = []
        unit = int96_unit(self._paths)
        for path in self._paths:
            with open_parquet(path, unit) as file:
                schema = file.schema_arrow
                for group in range(file.num_row_groups):
                    metadata = file.metadata.row_group(group)
                    rows += metadata.num_rows
                    ranges.append(_statistics(metadata))
                    groups.append((path, group))
            schemas.append(schema if self._columns is None else _selected(schema, self._columns))
        schema = common_schema(schemas, self._paths)
        known = _covering(ranges) if all(each.equals(schema) for each in schemas) else {}
        traits = replace(self.traits, rows=rows, ranges=known)
        splits = [self._reader(path, group, schema, unit) for path, group in groups]
        return Bound(schema, traits, splits)

    def _reader(self, path: Path, group: int | None, schema: pa.Schema, unit: str) -> Split:
        def read() -> Iterator[pa.RecordBatch]:
            with open_parquet(path, unit) as file:
                for batch in file.iter_batches(
                    batch_size=self._rows,
                    row_groups=None if group is None else [group],
                    columns=self._columns,
                ):
                    yield conformed(batch, schema, f"file {str(path)!r}")

        return read

    def __str__(self) -> str:
        names = ", ".join(path.name for path in self._paths)
        return f"parquet({names})"


class SortedParquetSource(ParquetSource):
    """Source of Parquet files, each of them sorted by a column, which are merged: in one part.

    Parameters
    ----------
    paths : sequence of paths
        Paths of the files. Rows that tie come in this order.
    by : str
        Column that every file is sorted by.
    rows : int
        Largest number of rows in a batch of a file.
    """

    def __init__(self, paths: Sequence[str | Path], by: str, rows: int = 1 << 16) -> None:
        super().__init__(paths, sorted_by=[by], rows=rows)
        self._by = by

    def bind(self) -> Bound:
        bound = super().bind()
        require_column(bound.schema.names, self._by, str(self))
        unit = int96_unit(self._paths)
        readers = [self._reader(path, None, bound.schema, unit) for path in self._paths]
        names = [f"file {str(path)!r}" for path in self._paths]
        return replace(bound, splits=[lambda: merge_sorted(readers, self._by, names)])


def _statistics(group: Any) -> dict[str, tuple[Any, Any]]:
    """Return the smallest and largest value of each column of a row group that stores them."""
    known = {}
    for index in range(group.num_columns):
        column = group.column(index)
        if column.is_stats_set and column.statistics.has_min_max:
            with suppress(OverflowError, ValueError):  # a time that Python's calendar does not have
                low, high = column.statistics.min, column.statistics.max
                if low == low and high == high:  # pandas takes the least of all times for none
                    known[column.path_in_schema] = low, high
    return known


def _covering(groups: Sequence[Mapping[str, tuple[Any, Any]]]) -> dict[str, tuple[Any, Any]]:
    """Return the ranges that cover those of all groups, for the columns known in all groups."""
    names = set.intersection(*(set(group) for group in groups)) if groups else set()
    return {
        name: (min(group[name][0] for group in groups), max(group[name][1] for group in groups))
        for name in sorted(names)
    }


def _selected(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns])
