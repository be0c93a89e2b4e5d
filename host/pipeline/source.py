# SPDX-License-Identifier: Apache-2.0
"""Sources of rows, which are bound when a terminal operation begins, and their parts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
import threading

import numpy as np
import pyarrow as pa

from host.columns.kinds import canonical_float, integer_view
from host.errors import OrderError, UsageError
from host.files.reading import (
    BATCH_ROWS,
    ParquetFile,
    Split,
    common_schema,
    conformed,
    covering,
    int96_unit,
)
from host.pipeline.flags import Flag, Traits
from host.pipeline.sorting import falls
from host.query.tables import schema_without_views, without_views

__all__ = [
    "BatchSource",
    "Bound",
    "ParquetSource",
    "Source",
    "Split",
    "TableSource",
    "distinct_as_declared",
    "in_declared_order",
]

# Parts of a source, and whether their rows are in order, and distinct, as was declared.


def in_declared_order(splits: Sequence[Split], by: Sequence[str], source: str) -> list[Split]:
    """Return parts of a source that raise :exc:`OrderError` at a row that is out of order.

    Batches pass by reference. Each row is compared with the one before it: in its own part as it is
    read, across parts as soon as the end of one and the beginning of the next are known, in
    whatever threads and order parts are read. What is not read is not compared.

    Parameters
    ----------
    splits : sequence of callable
        The parts, in order.
    by : sequence of str
        Columns that all parts together are declared to be sorted by, ascending, nulls last. A
        column that a part does not have is left to those who look it up.
    source : str
        What the source is called in the message.
    """
    ends = _Ends(len(splits), by, source)
    return [partial(ends.read, number, split) for number, split in enumerate(splits)]


def distinct_as_declared(splits: Sequence[Split], by: Sequence[str], source: str) -> list[Split]:
    """Return parts of a source that raise :exc:`OrderError` at a row that is repeated.

    Batches pass by reference. Each row is compared with all that were read before it, in whatever
    threads and order parts are read; so what their columns ``by`` hold is kept, as Python objects
    in a set. What is not read is not compared.

    Parameters
    ----------
    splits, source
        As for :func:`in_declared_order`.
    by : sequence of str
        Columns of which no two rows have the same values, where nulls equal nulls, and floats are
        compared as in SQL. A column that a part does not have is left to those who look it up.
    """
    keys = _Keys(len(splits), by, source)
    return [partial(keys.read, number, split) for number, split in enumerate(splits)]


def _all_of(split: Split) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of a part; closing the generator closes that of the part."""
    yield from split()


class _Keys:
    """Keys of the rows that have been read, and those of each part, guarded by a lock."""

    def __init__(self, parts: int, by: Sequence[str], source: str) -> None:
        self.by, self.source = list(by), source
        self._of_part: list[list[list[Hashable]]] = [[] for _ in range(parts)]
        self._seen: set[Hashable] = set()
        self._lock = threading.Lock()

    def read(self, part: int, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a part, which may be read again, and compare its rows."""
        with self._lock:  # forget the keys of an earlier reading
            self._seen.difference_update(*self._of_part[part])
            self._of_part[part] = []
        row = 0
        with closing(_all_of(split)) as batches:
            for batch in batches:
                if set(self.by) <= set(batch.schema.names):
                    self._add(part, row, batch)
                row += batch.num_rows
                yield batch

    def _add(self, part: int, row: int, batch: pa.RecordBatch) -> None:
        """Keep the keys of the next rows of a part, of which the first has number ``row``."""
        columns = [_hashable(batch.column(name)) for name in self.by]
        keys: list[Hashable] = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        fresh = set(keys)
        with self._lock:
            if len(fresh) < len(keys) or not self._seen.isdisjoint(fresh):
                self._refuse(keys, part, row, batch)
            self._seen |= fresh
            self._of_part[part].append(keys)

    def _refuse(self, keys: Sequence[Hashable], part: int, row: int, batch: pa.RecordBatch) -> None:
        met = self._seen.copy()
        for at, key in enumerate(keys):
            if key in met:
                values = batch.slice(at, 1).select(self.by).to_pylist()[0]
                place = part if len(self._of_part) > 1 else None
                raise OrderError.false_claim(self.source, self.by, row + at, values, part=place)
            met.add(key)


def _hashable(column: pa.Array) -> list[Hashable]:
    """Return values that are equal, and have equal hashes, where those of the column are equal."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = canonical_float(column)
    elif pa.types.is_temporal(column.type):
        column = pa.array(integer_view(column), mask=np.asarray(column.is_null()))
    values: list[Hashable] = column.to_pylist()
    return list(map(repr, values)) if pa.types.is_nested(column.type) else values


class _Ends:
    """First and last rows of the parts that have been read, guarded by a lock.

    An end of a part is compared with that of the nearest part beyond it of which one is known,
    whatever lies between the two: what is sorted as a whole is so wherever it is looked at.
    """

    def __init__(self, parts: int, by: Sequence[str], source: str) -> None:
        self.parts, self.by, self.source = parts, list(by), source
        self._first: dict[int, pa.RecordBatch] = {}
        self._last: dict[int, pa.RecordBatch] = {}
        self._latest = -1  # number of the last part that has begun
        self._lock = threading.Lock()

    def read(self, part: int, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a part, which may be read again, and compare its rows."""
        with self._lock:  # forget an earlier reading
            self._first.pop(part, None)
            self._last.pop(part, None)
        last: pa.RecordBatch | None = None
        row = 0
        with closing(_all_of(split)) as batches:
            for batch in batches:
                if batch.num_rows and set(self.by) <= set(batch.schema.names):
                    keys = batch.select(self.by)
                    first = _copy(keys, 0)
                    if last is None:
                        self._begin(part, first)
                    else:
                        self._check(pa.concat_batches([last, first]), part, row)
                    self._check(keys, part, row + 1)
                    last = _copy(keys, keys.num_rows - 1)
                    row += batch.num_rows
                yield batch
        if last is not None:
            self._end(part, last)

    def _begin(self, part: int, first: pa.RecordBatch) -> None:
        with self._lock:
            self._first[part] = first
            self._latest = max(self._latest, part)
            before = part - 1
            while before >= 0 and before not in self._last:
                before -= 1
            if before >= 0:
                self._check(pa.concat_batches([self._last[before], first]), part, 0)

    def _end(self, part: int, last: pa.RecordBatch) -> None:
        with self._lock:
            self._last[part] = last
            behind = part + 1
            while behind <= self._latest and behind not in self._first:
                behind += 1
            if behind <= self._latest:
                self._check(pa.concat_batches([last, self._first[behind]]), behind, 0)

    def _check(self, rows: pa.RecordBatch, part: int, row: int) -> None:
        """Raise an error if a row is less than the one before; ``row`` is the number of the second.

        The number counts within the part.
        """
        down = falls(rows, self.by)
        if down.any():
            at = int(np.argmax(down))
            earlier, later = rows.slice(at, 2).to_pylist()
            place = part if self.parts > 1 else None
            raise OrderError.false_claim(self.source, self.by, row + at, later, earlier, part=place)


def _copy(keys: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """Copy a row, so that the memory of its batch is not kept."""
    return keys.take(pa.array([row]))


# Sources of rows, which are bound when a terminal operation begins.


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
            Name of the source in the error, which is :exc:`~host.errors.OrderError`.
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
        return Bound(schema_without_views(self._schema), self.traits, [self._of_one_schema])

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
        rows: int = BATCH_ROWS,
    ) -> None:
        if isinstance(paths, (str, Path)):
            paths = [paths]
        self._paths = [Path(each) for each in paths]
        self._columns = None if columns is None else list(columns)
        self._rows = rows
        self.traits = _declared(Flag.SIZED | Flag.ORDERED, sorted_by, distinct_by)

    def bind(self) -> Bound:
        unit = int96_unit(self._paths)
        files = [ParquetFile(path, unit) for path in self._paths]
        schemas = [
            file.schema if self._columns is None else _selected(file.schema, self._columns)
            for file in files
        ]
        schema = common_schema(schemas, self._paths)
        alike = all(each.equals(schema) for each in schemas)
        known = covering([group for file in files for group in file.groups]) if alike else {}
        traits = replace(self.traits, rows=sum(file.rows or 0 for file in files), ranges=known)
        splits = [
            partial(self._read, file, group, schema)
            for file in files
            for group in range(len(file.groups))
        ]
        return Bound(schema, traits, splits)

    def _read(self, file: ParquetFile, group: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in file.batches(self._columns, group=group, rows=self._rows):
            yield conformed(batch, schema, f"file {str(file.path)!r}")

    def __str__(self) -> str:
        names = ", ".join(path.name for path in self._paths)
        return f"parquet({names})"


def _selected(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns])
