# SPDX-License-Identifier: Apache-2.0
"""Read tables from files: Parquet, CSV and JSON, as other tools write them.

What a CSV file means
    A cell that is empty is null, and ``""`` in quotes is a text without characters. The type of a
    column follows from all of its cells: integers, booleans, dates, times, numbers, or text. Whole
    numbers never become floating point: those beyond 64 bits stay text. In a column that is not
    text, :data:`MISSING` stand for null too. The separator is found in the first lines, and
    :class:`CsvOptions` say what cannot be found.

INT96 times of Parquet
    They reach further than 64 bits of nanoseconds do. They are read as nanoseconds where all of a
    column's values fit, else as microseconds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
import csv as plain_csv
from dataclasses import dataclass, fields, replace
import glob
import io
import json
from pathlib import Path
import re
import shlex
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv
from pyarrow import json as arrow_json
import pyarrow.compute as pc
import pyarrow.parquet as pq

from host.errors import UnknownColumnError, UsageError
from host.query.tables import plain_type

__all__ = [
    "CsvOptions",
    "ENDINGS",
    "FORMATS",
    "MISSING",
    "common_schema",
    "conformed",
    "csv_options",
    "files_of",
    "format_of",
    "input_format",
    "int96_unit",
    "open_parquet",
    "partition_of",
    "plain_schema",
    "read_parts",
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
}
_NAMES = {".parquet": "Parquet", ".csv": "CSV", ".json": "JSON"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")

#: What stands for null in columns of a CSV file that are not text, besides an empty cell.
MISSING = (
    "NA", "N/A", "n/a", "NULL", "null", "#N/A", "#N/A N/A", "#NA",
    "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN",
)  # fmt: skip
_SEPARATORS = (",", "\t", ";", "|")
_SAMPLE = 1 << 16
_BLOCK = 1 << 20
_LARGEST_BLOCK = 1 << 30
#: Doubles from here on may stand for integers that 64 bits do not hold.
_INTEGERS_END = float(1 << 63)
#: How a value that is no text can begin.
_TYPED = re.compile(r"\s*([-+.\d]|(true|false|nan|inf)$)", re.IGNORECASE)
_TIME = re.compile(r"\s*\d{1,4}[-:]\d\d")
_DIGITS = r"^[+-]?\d+$"
#: Types that Arrow does not find by itself: it takes fractions of a second for nanoseconds, which
#: 64 bits hold until 2262, and finds no times of day with fractions.
_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.time64("ns"))
#: Name of the partition of a Hive folder whose key is null.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 40

_INT64 = np.iinfo(np.int64)
#: Seconds since 1970 that nanoseconds, and microseconds, of 64 bits certainly hold.
_SECONDS = {"ns": 9_223_372_035, "us": 9_223_372_036_853}


@dataclass(frozen=True)
class CsvOptions:
    """What is known of CSV files before they are read.

    Parameters
    ----------
    delimiter : str, optional
        The character between cells; by default, one of comma, tab, semicolon and bar is found.
    quote : str
        The character around cells that hold separators or line ends; ``none`` if there is none.
    escape : str, optional
        The character before a quote inside a cell, if quotes are not doubled.
    decimal : str
        The character before the fraction of a number.
    encoding : str
        The character encoding.
    skip : int
        Number of lines before the header.
    null : tuple of str
        Cells without quotes that are null, in every column.
    text : tuple of str
        Columns that are text, whatever their cells look like.
    """

    delimiter: str | None = None
    quote: str = '"'
    escape: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    skip: int = 0
    null: tuple[str, ...] = ()
    text: tuple[str, ...] = ()


def csv_options(texts: Iterable[str]) -> CsvOptions:
    """Return the options that texts such as ``delimiter=;`` give; ``null`` and ``text`` may repeat.

    Raises
    ------
    UsageError
        If an option is unknown, repeats, or has a value that is none.
    """
    known = {field.name for field in fields(CsvOptions)}
    given: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or name not in known:
            raise UsageError(
                f"--csv-option takes NAME=VALUE, where NAME is one of {', '.join(sorted(known))}, "
                f"not {text!r}."
            )
        if name in ("null", "text"):
            given[name] = (*given.get(name, ()), value)
        elif name in given:
            raise UsageError(f"--csv-option gives {name!r} twice; leave one of them out.")
        else:
            given[name] = _option(name, value)
    return CsvOptions(**given)


def _option(name: str, value: str) -> Any:
    if name == "skip":
        if not value.isdecimal():
            raise UsageError(f"--csv-option skip takes a number of lines, not {value!r}.")
        return int(value)
    if name == "encoding":
        try:
            "".encode(value)
        except LookupError:
            raise UsageError(
                f"--csv-option encoding takes a name such as latin-1 or utf-16, not {value!r}."
            ) from None
        return value
    value = {"\\t": "\t", "tab": "\t"}.get(value, value)
    if (name, value) != ("quote", "none") and (len(value) != 1 or not value.isascii()):
        raise UsageError(
            f"--csv-option {name} takes one ASCII character (tab and \\t are a tab), not {value!r}."
        )
    return value


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
    """Return a schema without metadata, and without the views that Arrow does not sort or take."""
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
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise UsageError(
                f"Column {field.name!r} of {name} is {rows.schema.field(at).type}, and cannot be "
                f"read as {field.type}, its type in other files of the input: {_first_line(error)}."
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
    with _reading(path, ".parquet"):
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
) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.uint64]]]:
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


def _time_leaves(array: pa.Array) -> Iterator[npt.NDArray[np.int64]]:
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


# Any format.


def read_table(
    path: str | Path, options: CsvOptions | None = None, *, unit: str | None = None
) -> pa.Table:
    """Read a table from a file.

    A JSON file holds one object per line, or one array of objects; types are inferred in the same
    way.

    Parameters
    ----------
    path : path-like
        The file.
    options : CsvOptions, optional
        What is known of it, if it is a CSV file.
    unit : str, optional
        The unit of INT96 times, if it is a Parquet file; see :func:`int96_unit`.

    Raises
    ------
    UsageError
        If the file is missing, or its content does not match its ending.
    """
    place, options = Path(path), options or CsvOptions()
    kind = input_format(place)
    readers: dict[str, Callable[[], pa.Table]] = {
        ".parquet": lambda: _read_parquet(place, unit),
        ".csv": lambda: _read_csv(place, options),
        ".json": lambda: _read_json(place),
    }
    with _reading(place, kind, options.encoding):
        return readers[kind]()


def read_parts(
    path: str | Path, files: Sequence[Path], options: CsvOptions | None = None
) -> list[pa.Table]:
    """Read the files of an input as tables of the same columns and types.

    The keys of a Hive folder become columns. What is text in one CSV file is text in all of them. A
    column that a JSON file lacks is null there.

    Parameters
    ----------
    path, files : path-like, sequence of Path
        The input, and :func:`files_of` it.
    options : CsvOptions, optional
        What is known of CSV files.

    Raises
    ------
    UsageError
        If a file cannot be read, or files do not belong together; see :func:`common_schema`.
    """
    options = options or CsvOptions()
    kind = input_format(files[0])
    unit = int96_unit(files) if kind == ".parquet" else None
    tables = [read_table(file, options, unit=unit) for file in files]
    if kind == ".csv":
        mixed = _without_a_common_type([table.schema for table in tables])
        if mixed:
            options = replace(options, text=(*options.text, *mixed))
            tables = [read_table(file, options) for file in files]
    tables = _with_partitions(path, files, tables)
    schemas = [table.schema for table in tables]
    if kind == ".json":
        schemas = [_with_all(schema, schemas) for schema in schemas]
    schema = common_schema(schemas, files)
    return [
        conformed(table, schema, f"file {str(file)!r}")
        for file, table in zip(files, tables, strict=True)
    ]


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


def _with_partitions(
    path: str | Path, files: Sequence[Path], tables: Sequence[pa.Table]
) -> list[pa.Table]:
    """Return tables with the keys of their Hive folders as columns behind their own."""
    partitions = [partition_of(path, file) for file in files]
    columns = {}
    for name in dict.fromkeys(name for keys in partitions for name in keys):
        cells = pa.chunked_array([[keys.get(name) for keys in partitions]], pa.string())
        found = _integers(cells)
        found = _inferred(cells, CsvOptions()) if found is None else found
        columns[name] = cells if found is None else found
    result = []
    for number, (keys, table) in enumerate(zip(partitions, tables, strict=True)):
        for name in keys:
            if name not in table.column_names:
                value = columns[name][number]
                table = table.append_column(name, pa.repeat(value, table.num_rows))
        result.append(table)
    return result


def require_text(options: CsvOptions, schemas: Sequence[pa.Schema]) -> None:
    """Raise unless each column that is said to be text is in one of the inputs.

    Raises
    ------
    UnknownColumnError
        If a column is in none of them.
    """
    names = [name for schema in schemas for name in schema.names]
    for name in options.text:
        if name not in names:
            raise UnknownColumnError(name, names, table="the inputs, for --csv-option text")


def _read_parquet(path: Path, unit: str | None) -> pa.Table:
    with open_parquet(path, int96_unit([path]) if unit is None else unit) as file:
        table = file.read()
    return conformed(table, plain_schema(table.schema), f"file {str(path)!r}")


def _stream(path: Path) -> pa.NativeFile:
    """Open a file, and uncompress it if its ending says that it is compressed."""
    return pa.input_stream(str(path.absolute()), compression="detect")


def _in_larger_blocks(read: Callable[[int], pa.Table]) -> pa.Table:
    """Read text in blocks of the usual size, and in larger ones if a row is larger than a block."""
    block = _BLOCK
    while True:
        try:
            return read(block)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block >= _LARGEST_BLOCK:
                raise
            block *= 8


# CSV.


def _read_csv(path: Path, options: CsvOptions) -> pa.Table:
    with _stream(path) as stream:
        head = stream.read(_SAMPLE)
    ended = len(head) < _SAMPLE
    sample = head.decode(options.encoding, errors="replace").removeprefix("\ufeff")
    lines = list(io.StringIO(sample, newline=""))[options.skip :]
    options = replace(options, delimiter=options.delimiter or _separator(lines, options, ended))

    def source() -> Any:
        # A header alone is a table without rows only if its line ends.
        if ended and len(lines) == 1 and not lines[0].endswith(("\n", "\r")):
            return pa.BufferReader(head + "\n".encode(options.encoding).removeprefix(b"\xff\xfe"))
        return _stream(path)

    null = ["", *options.null]
    table = _parsed(source, options, null)
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if name in options.text or table.column_names.count(name) > 1:
            continue
        if pa.types.is_binary(column.type):
            # PyArrow reads text that is not UTF-8 as binary values, which no CSV file can hold.
            raise ValueError(f"column {name!r} holds bytes that are no text")
        if pa.types.is_floating(column.type) and _may_be_integers(column):
            text = _parsed(source, replace(options, text=(name,)), null, only=[name]).column(0)
            blank = pc.is_in(text, value_set=pa.array(null))
            exact = _integers(pc.if_else(blank, pa.scalar(None, text.type), text))
            column = column if exact is None else exact
        elif pa.types.is_string(column.type):
            column = _typed(column, options)
        table = table.set_column(number, name, column)
    _require_last_quote(path, table, options)
    return table


def _parsed(
    source: Callable[[], Any],
    options: CsvOptions,
    null: Sequence[str],
    *,
    only: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    lone: bool = False,
) -> pa.Table:
    """Parse CSV text with a header, of which ``null`` are the cells without quotes that are null.

    An empty line is a null if there is a lone column.
    """
    parse = csv.ParseOptions(
        delimiter=options.delimiter,
        quote_char=False if options.quote == "none" else options.quote,
        escape_char=options.escape or False,
        newlines_in_values=True,
        ignore_empty_lines=not lone,
    )
    convert = csv.ConvertOptions(
        null_values=list(null),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        decimal_point=options.decimal,
        column_types=types or dict.fromkeys(options.text, pa.string()),
        include_columns=only,
    )

    def read(block: int) -> pa.Table:
        settings = csv.ReadOptions(
            encoding=options.encoding, skip_rows=options.skip, block_size=block
        )
        with source() as stream:
            return csv.read_csv(stream, settings, parse, convert)

    return _in_larger_blocks(read)


def _separator(lines: Sequence[str], options: CsvOptions, ended: bool) -> str:
    """Return the separator that cuts all lines of a sample into the same number of cells."""
    quoting: dict[str, Any] = {"quotechar": options.quote, "escapechar": options.escape}
    if options.quote == "none":
        quoting = {"quoting": plain_csv.QUOTE_NONE}
    for separator in _SEPARATORS:
        cut = plain_csv.reader(lines, delimiter=separator, **quoting)
        try:
            counts = [len(cells) for cells in cut if cells]
        except plain_csv.Error:
            continue
        if not ended:
            counts.pop()
        if counts and counts[0] > 1 and len(set(counts)) == 1:
            return separator
    # No separator cuts all lines alike: take one that cuts the header, and let the parser say why.
    header = lines[0] if lines else ""
    return next((separator for separator in _SEPARATORS if separator in header), ",")


def _may_be_integers(column: pa.ChunkedArray) -> bool:
    """Return whether a column of doubles has values as large as integers beyond 64 bits."""
    edges = pc.min_max(column).as_py()
    return any(abs(edge) >= _INTEGERS_END for edge in edges.values() if edge is not None)


def _typed(text: pa.ChunkedArray, options: CsvOptions) -> pa.ChunkedArray:
    """Return the cells of a column in the type of all those that are not :data:`MISSING`.

    They stay as they are if they are text.
    """
    blank = pc.is_in(text, value_set=pa.array(["", *MISSING, *options.null]))
    cells = pc.if_else(blank, pa.scalar(None, text.type), text)
    begin = next((cell for cell in cells.drop_null()[:1].to_pylist()), "")
    if not _TYPED.match(begin):
        return text
    found = _integers(cells)
    if found is None and pc.any(blank).as_py():
        found = _inferred(cells, options)
    return text if found is None and (found := _times(cells)) is None else found


def _integers(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return texts as integers, or as they are where 64 bits do not hold one; None if not whole."""
    digits = pc.match_substring_regex(pc.utf8_trim_whitespace(cells), _DIGITS)
    if not pc.all(digits).as_py():
        return None
    found = _fitting(cells, (pa.int64(), pa.uint64()))
    return cells if found is None else found


def _inferred(cells: pa.ChunkedArray, options: CsvOptions) -> pa.ChunkedArray | None:
    """Return texts in the type that a column of a CSV file with them has; None if it is text."""
    source = _as_csv(cells)
    found = _parsed(source, CsvOptions(delimiter=",", decimal=options.decimal), [""], lone=True)
    return None if pa.types.is_string(found.column(0).type) else found.column(0)


def _times(cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return texts as times of :data:`_TIMES`; None if they are none."""
    begin = next((cell for cell in cells.drop_null()[:1].to_pylist()), "")
    return _fitting(cells, _TIMES) if _TIME.match(begin) else None


def _fitting(cells: pa.ChunkedArray, types: Sequence[pa.DataType]) -> pa.ChunkedArray | None:
    """Return texts in the first of some types that all of them can be read as."""
    source = _as_csv(cells)
    for dtype in types:
        try:
            settings = CsvOptions(delimiter=",")
            return _parsed(source, settings, [""], types={"cells": dtype}, lone=True).column(0)
        except pa.ArrowInvalid:
            continue  # a cell has another type
    return None


def _as_csv(cells: pa.ChunkedArray) -> Callable[[], pa.BufferReader]:
    """Return what opens a CSV file in memory: the types of cells are found by the parser alone."""
    buffer = io.BytesIO()
    csv.write_csv(pa.table({"cells": cells}), buffer)
    return lambda: pa.BufferReader(buffer.getbuffer())


def _require_last_quote(path: Path, table: pa.Table, options: CsvOptions) -> None:
    """Raise if the last cell has swallowed the rest of the file, because its quote has no end."""
    if not table.num_rows or not table.num_columns or options.quote == "none":
        return
    last = table.column(table.num_columns - 1)[-1].as_py()
    if not isinstance(last, str) or "\n" not in last:
        return
    tail = b""
    with _stream(path) as stream:
        while block := stream.read(_BLOCK):
            tail = (tail + block)[-64:]
    if not tail.decode(options.encoding, errors="ignore").rstrip().endswith(options.quote):
        begin = last.split("\n", 1)[0][:_SHOWN]
        raise ValueError(f"the quote before {begin!r} in the last row has no end")


# JSON.


def _read_json(path: Path) -> pa.Table:
    with io.BufferedReader(_stream(path)) as stream:
        first = next((line.strip() for line in stream if line.strip(b"\xef\xbb\xbf \t\r\n")), b"")
    if not first:
        return pa.table({})
    if first.removeprefix(b"\xef\xbb\xbf").startswith(b"["):
        with _stream(path) as stream:
            rows = json.loads(stream.read())
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("the array holds something that is no object")
        if not rows:
            return pa.table({})
        lines = "\n".join(json.dumps(row) for row in rows).encode()

        def source() -> Any:
            return pa.BufferReader(lines)
    else:

        def source() -> Any:
            return _stream(path)

    def read(block: int) -> pa.Table:
        with source() as stream:
            return arrow_json.read_json(stream, arrow_json.ReadOptions(block_size=block))

    table = _in_larger_blocks(read)
    table.validate(full=True)  # PyArrow does not check that text is UTF-8
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        found = None
        if pa.types.is_floating(column.type) and _may_be_integers(column):
            with io.BufferedReader(source()) as stream:
                values = [json.loads(line).get(name) for line in stream if line.strip()]
            if all(value is None or isinstance(value, int) for value in values):
                cells = [None if value is None else str(value) for value in values]
                found = _integers(pa.chunked_array([cells], pa.string()))
        elif pa.types.is_string(column.type):
            found = _times(column)
        if found is not None:
            table = table.set_column(number, name, found)
    return table


# Errors.


@contextmanager
def _reading(path: Path, kind: str, encoding: str = "utf-8") -> Iterator[None]:
    """Turn errors of reading a file of a format into those that users see."""
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(f"File {str(path)!r} cannot be read: No such file.") from error
    except OSError as error:
        # PyArrow also raises OSError for invalid content.
        reason = error.strerror or _first_line(error)
        raise UsageError(f"File {str(path)!r} cannot be read: {reason}.") from error
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        cause = None if kind == ".parquet" else _encoding_error(path, encoding)
        advice = ""
        if kind == ".csv":
            advice = "; if cells are separated or quoted in another way, tell it by --csv-option"
        raise cause or UsageError(
            f"File {str(path)!r} is not valid {_NAMES[kind]}: {_first_line(error)}{advice}."
        ) from error


def _encoding_error(path: Path, encoding: str) -> UsageError | None:
    """Return the error for a text file that is not UTF-8, with its first such line; else None."""
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        return None
    with io.BufferedReader(_stream(path)) as stream:
        is_utf16 = stream.peek(2)[:2] in _UTF16
        for number, line in enumerate(iter(lambda: stream.readline(_BLOCK), b""), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                if error.end == len(line) == _BLOCK:
                    continue  # a line longer than a block, cut within a character
                begin = max(0, error.start - _SHOWN // 2)
                return _not_utf8(path, number, line[begin : begin + _SHOWN].rstrip(), is_utf16)
    return None


def _not_utf8(path: Path, line: int, text: bytes, is_utf16: bool) -> UsageError:
    charset = "UTF-16" if is_utf16 else "LATIN1"
    guess = "as it begins like UTF-16" if is_utf16 else "for example from Latin-1"
    copy = path.with_name(f"{path.stem}-utf8{path.suffix}")
    command = f"iconv -f {charset} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(str(copy))}"
    option = f" (of a CSV file, --csv-option encoding={charset.lower()} does it)"
    return UsageError(
        f"File {str(path)!r} is not UTF-8: line {line} has {text!r}; convert it to UTF-8, {guess}: "
        f"`{command}`{option if input_format(path) == '.csv' else ''}."
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
