# SPDX-License-Identifier: Apache-2.0
"""Read the files of an input in batches: Parquet, CSV, JSON and Arrow, as other tools write them.

INT96 times of Parquet
    They reach further than 64 bits of nanoseconds do. They are read as nanoseconds where all of a
    column's values fit, else as microseconds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
import glob
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from host.arrays import Int64s, UInt64s
from host.errors import UsageError, unknown_column
from host.files.text import (
    MISSING,
    CsvFile,
    CsvOptions,
    JsonFile,
    first_line,
    inferred,
    reading_file,
)
from host.query.tables import plain_column, plain_type

__all__ = [
    "BATCH_ROWS",
    "Dataset",
    "ENDINGS",
    "FORMATS",
    "ParquetFile",
    "Split",
    "common_schema",
    "conformed",
    "covering",
    "files_of",
    "format_of",
    "input_format",
    "int96_unit",
    "partition_of",
    "plain_schema",
    "read_table",
    "require_text",
]

#: Endings of files that are written.
FORMATS = (".parquet", ".csv", ".json")
#: Endings of files that are read, and their formats; a text file may also be compressed.
ENDINGS = {
    ".parquet": ".parquet",
    ".csv": ".csv",
    ".tsv": ".csv",
    ".json": ".json",
    ".jsonl": ".json",
    ".ndjson": ".json",
    ".arrow": ".arrow",
    ".feather": ".arrow",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")

#: Yields the batches of one part of an input; may be called in any thread.
Split: TypeAlias = Callable[[], Iterable[pa.RecordBatch]]

#: Most rows of a batch of a Parquet file.
BATCH_ROWS = 1 << 17
#: Name of the partition of a Hive folder whose key is null.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
#: Seconds since 1970 that nanoseconds, and microseconds, of 64 bits certainly hold.
_SECONDS = {"ns": 9_223_372_035, "us": 9_223_372_036_853}


# Names of files.


def format_of(path: str | Path) -> str:
    """Return the ending of ``path``, one of :data:`FORMATS`.

    Raises
    ------
    UsageError
        If the ending is not supported, or Arrow cannot open a file of that name.
    """
    ending = _ending(path)
    if ending not in FORMATS:
        raise UsageError(f"File {str(path)!r} must end in one of {', '.join(FORMATS)}.")
    return ending


def input_format(path: str | Path) -> str:
    """Return the format of a file that is read, one of :data:`FORMATS`; text may be compressed.

    Raises
    ------
    UsageError
        If the ending is not supported, or Arrow cannot open a file of that name.
    """
    ending = _ending(path)
    if ending in _COMPRESSED:
        inner = ENDINGS.get(_ending(Path(path).with_suffix("")))
        if inner in (".csv", ".json"):
            return inner
    if ending not in ENDINGS:
        raise UsageError(
            f"File {str(path)!r} must end in one of {', '.join(ENDINGS)}; text may be compressed "
            f"({', '.join(_COMPRESSED)} after that)."
        )
    return ENDINGS[ending]


def _ending(path: str | Path) -> str:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"The name of file {str(path)!r} is no UTF-8; rename the file.") from None
    return Path(path).suffix.lower()


def files_of(path: str | Path) -> list[Path]:
    """Return the files that an input consists of, by name.

    An input is a file, a folder of files of one format, a Hive folder (whose folders ``KEY=VALUE``
    hold files), or a pattern such as ``data/*.csv``. Files and folders whose names begin with ``.``
    or ``_`` are left out: whoever writes a folder of files keeps notes in these.

    Raises
    ------
    UsageError
        If there is no file of a supported format, or there are files of several formats.
    """
    place = Path(path)
    if place.is_dir():
        files, what = _files_in(place), "Folder"
    elif place.exists() or not glob.has_magic(str(path)):
        return [place]
    else:
        matches = (Path(name) for name in sorted(glob.glob(str(path), recursive=True)))
        files = [file for match in matches for file in _files_at(match)]
        what = "Pattern"
    formats = {input_format(file) for file in files}
    if len(formats) != 1:
        found = f"has files of {' and '.join(sorted(formats))}" if formats else "has no files"
        raise UsageError(
            f"{what} {str(path)!r} {found}; an input is a folder of files that all end in one of "
            f"{', '.join(ENDINGS)}."
        )
    return files


def _files_at(place: Path) -> list[Path]:
    return _files_in(place) if place.is_dir() else [place]


def _files_in(folder: Path) -> list[Path]:
    entries = [entry for entry in sorted(folder.iterdir()) if entry.name[0] not in "._"]
    files = [entry for entry in entries if entry.is_file()]
    keyed = [entry for entry in entries if entry.is_dir() and "=" in entry.name]
    return files + [file for entry in keyed for file in _files_in(entry)]


def partition_of(path: str | Path, file: Path) -> dict[str, str | None]:
    """Return the keys of a file in a Hive folder: names and texts of the folders ``KEY=VALUE``.

    Parameters
    ----------
    path : path-like
        The input; folders above it, or above the first wildcard of a pattern, do not count.
    file : Path
        One of :func:`files_of` it.
    """
    if file == Path(path):
        return {}
    root = []
    for part in Path(path).parts:
        if glob.has_magic(part) and not Path(path).is_dir():
            break
        root.append(part)
    keys = [part.partition("=") for part in file.parts[len(root) : -1] if "=" in part]
    return {
        unquote(name): None if value == _HIVE_NULL else unquote(value) for name, _, value in keys
    }


# Schemas.


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without metadata, and of types whose rows Arrow sorts and takes."""
    return pa.schema([pa.field(f.name, plain_type(f.type), f.nullable) for f in schema])


def common_schema(schemas: Sequence[pa.Schema], files: Sequence[Path]) -> pa.Schema:
    """Return the columns of files of one input, by name, in the order of the first one.

    Columns of different types have the type that holds the values of both.

    Raises
    ------
    UsageError
        If a file has other columns, or no type holds the values of a column in all files; the error
        names the files.
    """
    first = schemas[0]
    for file, schema in zip(files, schemas, strict=True):
        if sorted(schema.names) != sorted(first.names):
            raise UsageError(
                f"File {str(file)!r} has the columns {', '.join(schema.names)}, but "
                f"{str(files[0])!r} of the same input has {', '.join(first.names)}."
            )
    if all(schema.equals(first) for schema in schemas):
        return plain_schema(first)
    found = []
    for name in first.names:
        common = first.field(name)
        for file, schema in zip(files, schemas, strict=True):
            dtype = _common(common.type, schema.field(name).type)
            if dtype is None:
                raise UsageError(
                    f"Column {name!r} is {schema.field(name).type} in file {str(file)!r}, but "
                    f"{common.type} in {str(files[0])!r} or a file after it, which is of the same "
                    f"input; write both with one type."
                )
            nullable = common.nullable or schema.field(name).nullable
            common = pa.field(name, dtype, nullable)
        found.append(common)
    return plain_schema(pa.schema(found))


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of two types; None if there is none."""
    one, other = plain_type(one), plain_type(other)
    if one == other or pa.types.is_null(other):
        return one
    one, other = (t.value_type if pa.types.is_dictionary(t) else t for t in (one, other))
    if pa.uint64() in (one, other) and all(map(pa.types.is_integer, (one, other))):
        return pa.uint64()  # values below zero are refused when they are cast
    if pa.types.is_timestamp(one) and pa.types.is_date(other) and one.tz is None:
        return one
    if pa.types.is_timestamp(other) and pa.types.is_date(one) and other.tz is None:
        return other
    try:
        schemas = [pa.schema([("", dtype)]) for dtype in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


def conformed(rows: Any, schema: pa.Schema, name: str) -> Any:
    """Return a table or a batch with the columns and types of ``schema``.

    Parameters
    ----------
    rows : pa.Table or pa.RecordBatch
        Rows of a file.
    schema : pa.Schema
        See :func:`common_schema`. A column that is missing becomes null.
    name : str
        What the file is called in messages.

    Raises
    ------
    UsageError
        If a value does not fit the type.
    """
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = []
    for field in schema:
        at = rows.schema.get_field_index(field.name)
        if at < 0:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(at)
        try:
            columns.append(plain_column(column, field.type))
        except pa.ArrowException as error:
            raise UsageError(
                f"Column {field.name!r} of {name} is {rows.schema.field(at).type}, and cannot be "
                f"read as {field.type}, its type in other files of the input: {first_line(error)}."
            ) from error
    return type(rows).from_arrays(columns, schema=schema)


# Parquet.


def open_parquet(path: Path, unit: str = "ns") -> pq.ParquetFile:
    """Open a Parquet file; times that are INT96 are read in ``unit``, see :func:`int96_unit`.

    Raises
    ------
    UsageError
        If the file is missing, or is no Parquet file.
    """
    with reading_file(path, ".parquet"):
        # PyArrow takes relative names such as "file:/a" for URIs, but never absolute paths.
        return pq.ParquetFile(path.absolute(), pre_buffer=False, coerce_int96_timestamp_unit=unit)


def int96_unit(paths: Iterable[Path]) -> str:
    """Return the unit that holds the INT96 times of all files: ``ns`` if they fit, else ``us``.

    INT96 is a day and the nanoseconds in it. The unit is that of all INT96 columns, because PyArrow
    reads all of a file in one. Files without such columns, which is most, are not read.

    Raises
    ------
    UsageError
        If neither unit holds all times; the error names a column.
    """
    needed: dict[str, str] = {}  # unit -> a column that needs it
    for path in paths:
        for column, seconds, rest in _int96_times(path):
            most = max(int(seconds.max(initial=0)), -1 - int(seconds.min(initial=0)))
            if most > _SECONDS["us"]:
                raise UsageError(
                    f"Column {column!r} of file {str(path)!r} holds INT96 times beyond the year "
                    f"290,000, which a timestamp cannot hold; correct them where they are written."
                )
            if most > _SECONDS["ns"]:
                needed["us"] = f"column {column!r} of file {str(path)!r}"
            if (rest % 1_000).any():
                needed["ns"] = f"column {column!r} of file {str(path)!r}"
    if len(needed) == 2:
        raise UsageError(
            f"The INT96 times of {needed['us']} lie outside 1677 .. 2262, which nanoseconds cannot "
            f"hold, and those of {needed['ns']} have nanoseconds, which microseconds cannot hold; "
            f"write them in another type (in Spark, spark.sql.parquet.outputTimestampType "
            f"TIMESTAMP_MICROS)."
        )
    return next(iter(needed), "ns")


def _int96_times(
    path: Path,
) -> Iterator[tuple[str, Int64s, UInt64s]]:
    """Yield the names of INT96 columns with seconds since 1970, and the nanoseconds after these."""
    with open_parquet(path, "s") as coarse:
        leaves = [coarse.schema.column(at) for at in range(len(coarse.schema))]
        columns = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
        if not columns:
            return
        with open_parquet(path, "ns") as fine:
            both = (file.iter_batches(columns=columns) for file in (coarse, fine))
            for batches in zip(*both, strict=True):
                for name, *arrays in zip(batches[0].schema.names, *batches, strict=True):
                    for seconds, wrapped in zip(*map(_time_leaves, arrays), strict=True):
                        # Nanoseconds are right modulo 2 ** 64, so their rest is right.
                        whole = seconds.view(np.uint64) * np.uint64(10**9)
                        yield name, seconds, wrapped.view(np.uint64) - whole


def _time_leaves(array: pa.Array) -> Iterator[Int64s]:
    """Yield the values of the timestamps in an array of any type; nulls are zero."""
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _time_leaves(child)
    elif pa.types.is_map(array.type):
        yield from _time_leaves(array.keys)
        yield from _time_leaves(array.items)
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        yield from _time_leaves(array.flatten())
    elif pa.types.is_timestamp(array.type):
        yield array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def statistics(group: Any) -> dict[str, tuple[Any, Any]]:
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


def covering(groups: Sequence[Mapping[str, tuple[Any, Any]]]) -> dict[str, tuple[Any, Any]]:
    """Return the ranges that cover those of all groups, for the columns known in all groups."""
    names = set.intersection(*(set(group) for group in groups)) if groups else set()
    return {
        name: (min(group[name][0] for group in groups), max(group[name][1] for group in groups))
        for name in sorted(names)
    }


# Files of any format, one by one.


class ParquetFile:
    """A Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    unit : str
        Of its times that are INT96; see :func:`int96_unit`.

    Attributes
    ----------
    path, schema, rows
        The file, its columns, and the number of its rows.
    groups : list of mapping
        Ranges of the columns of each row group that has rows, as far as they are told.
    """

    def __init__(self, path: Path, unit: str) -> None:
        self.path, self._unit = path, unit
        with open_parquet(path, unit) as file:
            self.schema: pa.Schema = file.schema_arrow
            self.rows: int | None = file.metadata.num_rows
            groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
            self._places = [at for at, group in enumerate(groups) if group.num_rows]
            self.groups = [statistics(groups[at]) for at in self._places]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        group: int | None = None,
        rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, those of one of the groups or of all, or some of their columns.

        Batches are about equal, so that a file of a few is joined while it is read.
        """
        groups = None if group is None else [self._places[group]]
        if group is None and self.rows:
            rows = -(-self.rows // -(-self.rows // rows))
        with open_parquet(self.path, self._unit) as file, reading_file(self.path, ".parquet"):
            yield from file.iter_batches(rows, row_groups=groups, columns=columns)


class _ArrowFile:
    """A file of Arrow's own format, which is also called Feather."""

    rows: int | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading_file(path, ".arrow"), pa.OSFile(str(path), "rb") as file:
            self.schema: pa.Schema = pa.ipc.open_file(file).schema

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        places = None
        if columns is not None:
            places = [self.schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=places)
        with reading_file(self._path, ".arrow"), pa.OSFile(str(self._path), "rb") as file:
            reader = pa.ipc.open_file(file, options=options)
            for at in range(reader.num_record_batches):
                yield reader.get_batch(at)


#: A file of an input. Its ``rows`` are None if the file must be read to count them.
_Part: TypeAlias = ParquetFile | CsvFile | JsonFile | _ArrowFile


class Dataset:
    """The files of an input, which are read in batches of the same columns and types.

    The keys of a Hive folder become columns. What is text in one CSV file is text in all of them. A
    column that a JSON file lacks is null there.

    Parameters
    ----------
    path : path-like
        A file, a folder of files of one format, or a pattern; see :func:`files_of`.
    options : CsvOptions, optional
        What is known of CSV files.

    Attributes
    ----------
    path : path-like
        The input.
    files : list of Path
        Its files, in order.
    kind : str
        Their format.
    schema : pa.Schema
        Columns of all batches.

    Raises
    ------
    UsageError
        If a file cannot be read, or files do not belong together; see :func:`common_schema`.
    """

    def __init__(self, path: str | Path, options: CsvOptions | None = None) -> None:
        self.path, self.files = path, files_of(path)
        self.kind = input_format(self.files[0])
        options = options or CsvOptions()
        self._parts = self._opened(options)
        if self.kind == ".csv":
            mixed = _without_a_common_type([part.schema for part in self._parts])
            if mixed:
                self._parts = self._opened(replace(options, text=(*options.text, *mixed)))
        self._keys = _partition_keys([partition_of(path, file) for file in self.files])
        schemas = []
        for part, keys in zip(self._parts, self._keys, strict=True):
            own = part.schema
            added = [
                pa.field(name, key.type) for name, key in keys.items() if name not in own.names
            ]
            schemas.append(pa.schema([*own, *added]) if added else own)
        if self.kind == ".json":
            schemas = [_with_all(schema, schemas) for schema in schemas]
        self._alike = all(schema.equals(schemas[0]) for schema in schemas)
        self.schema = common_schema(schemas, self.files)

    def _opened(self, options: CsvOptions) -> list[_Part]:
        unit = int96_unit(self.files) if self.kind == ".parquet" else ""
        opens: dict[str, Callable[[Path], _Part]] = {
            ".parquet": lambda file: ParquetFile(file, unit),
            ".csv": lambda file: CsvFile(file, options),
            ".json": JsonFile,
            ".arrow": _ArrowFile,
        }
        return [opens[self.kind](file) for file in self.files]

    @property
    def rows(self) -> int | None:
        """Number of rows; None if files must be read to count them."""
        counts = [part.rows for part in self._parts]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def ranges(self) -> dict[str, tuple[Any, Any]]:
        """Ranges of the columns of which all files tell them."""
        if self.kind != ".parquet" or not self._alike:
            return {}
        return covering(self.groups)

    @property
    def groups(self) -> list[dict[str, tuple[Any, Any]]]:
        """Ranges of the columns of each part of a Parquet file, as far as they are told."""
        parts = [part for part in self._parts if isinstance(part, ParquetFile)]
        return [group for part in parts for group in part.groups]

    def parts(self, columns: Sequence[str] | None = None) -> list[Split]:
        """Return what reads each file, or some of its columns."""
        return [partial(self._batches, at, columns) for at in range(len(self.files))]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows, or some of their columns, file after file."""
        for part in self.parts(columns):
            yield from part()

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows, or some of their columns."""
        return pa.Table.from_batches(self.batches(columns), self.schema_of(columns))

    def schema_of(self, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema of all columns, or of some."""
        if columns is None:
            return self.schema
        return pa.schema([self.schema.field(name) for name in columns])

    def _batches(self, at: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        part, keys, file = self._parts[at], self._keys[at], f"file {str(self.files[at])!r}"
        schema, own = self.schema_of(columns), None
        if columns is not None:
            # Without any column, nothing would tell the number of rows.
            own = [name for name in columns if name in part.schema.names] or part.schema.names[:1]
        for batch in part.batches(own):
            for column, key in keys.items():
                if column in schema.names and column not in part.schema.names:
                    batch = batch.append_column(column, pa.repeat(key, batch.num_rows))
            yield conformed(batch, schema, file)


def read_table(path: str | Path, options: CsvOptions | None = None) -> pa.Table:
    """Return the rows of an input; see :class:`Dataset`."""
    return Dataset(path, options).table()


def _without_a_common_type(schemas: Sequence[pa.Schema]) -> list[str]:
    """Return the columns of the first schema for whose types in all schemas there is no type."""
    found = []
    for field in schemas[0]:
        common: pa.DataType | None = field.type
        for schema in schemas:
            at = schema.get_field_index(field.name)
            if common is not None and at >= 0:
                common = _common(common, schema.field(at).type)
        if common is None:
            found.append(field.name)
    return found


def _with_all(schema: pa.Schema, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return a schema with the names of all schemas; those it lacks have no type."""
    names = dict.fromkeys(name for each in schemas for name in each.names)
    return pa.schema(
        [schema.field(name) if name in schema.names else (name, pa.null()) for name in names]
    )


def _partition_keys(partitions: Sequence[dict[str, str | None]]) -> list[dict[str, pa.Scalar]]:
    """Return the keys of files in Hive folders, in the types that all of their texts have."""
    columns = {}
    for name in dict.fromkeys(name for keys in partitions for name in keys):
        cells = pa.array([keys.get(name) for keys in partitions], pa.string())
        plain = any(cell in MISSING for cell in cells.to_pylist())
        columns[name] = cells if plain else inferred(cells)
    return [
        {name: columns[name][number] for name in keys} for number, keys in enumerate(partitions)
    ]


def require_text(options: CsvOptions, schemas: Sequence[pa.Schema]) -> None:
    """Raise unless each column that is said to be text is in one of the inputs.

    Raises
    ------
    UsageError
        If a column is in none of them.
    """
    names = [name for schema in schemas for name in schema.names]
    for name in options.text:
        if name not in names:
            raise unknown_column(name, names, table="the inputs, for --csv-option text")
