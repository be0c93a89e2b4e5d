# SPDX-License-Identifier: Apache-2.0
"""Write tables to files whose endings decide the format, after checks of a command's outputs."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
import glob
import io
from itertools import combinations
import json
import os
from pathlib import Path
import sys
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv
import pyarrow.compute as pc
import pyarrow.parquet as pq

from host.arrays import Int64s
from host.columns.kinds import canonical_binary, integer_view
from host.errors import FailureError, UsageError
from host.files.atomic import atomic_file
from host.files.reading import format_of

__all__ = [
    "atomic_output",
    "inputs_of",
    "require_outputs",
    "table_file",
    "write_table",
]

# Checks and writing of a command's output files: none is an input, and each appears atomically.
#
# Every command that reads and writes files calls :func:`require_outputs` before it reads
# anything.


@contextmanager
def atomic_output(path: str | Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` if the block raises no error.

    Raises
    ------
    FailureError
        If the file cannot be written, for example because the disk is full. An existing file stays
        unchanged.
    """
    try:
        with atomic_file(path) as place:
            yield place
    except OSError as error:
        # PyArrow's own message is longer than the reason alone.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FailureError(f"Writing {str(path)!r} failed: {reason}.") from error


def inputs_of(options: argparse.Namespace) -> dict[str, Path]:
    """Return the paths that a join on the command line reads, by option."""
    places = {"--left": Path(options.left), "--right": Path(options.right)}
    kind, _, bundle = (options.device or "").partition(":")
    if kind in ("sim", "software") and bundle:
        places["--device"] = Path(bundle)
    return places


def require_outputs(
    outputs: Mapping[str, str | Path], inputs: Mapping[str, str | Path] | None = None
) -> None:
    """Raise unless each output can be written without overwriting an input or another output.

    Files are compared by what the operating system says they are, not by their names. Symbolic
    links, hard links, ``..`` and names that differ only in case make no difference. If an input is
    a folder, everything in it is protected.

    Parameters
    ----------
    outputs, inputs : mapping of str to path-like
        Paths, by the options that name them.

    Raises
    ------
    UsageError
        If an output is an input, lies in an input or contains one, if it is another output, or if
        it cannot be written.
    """
    for option, output in outputs.items():
        for source, place in (inputs or {}).items():
            found = (_relation(Path(output), each) for each in _places(place))
            if relation := next(filter(None, found), None):
                raise UsageError(
                    f"{option} {str(output)!r} {relation} {source} {str(place)!r}, which it would "
                    f"overwrite; name another file for {option}."
                )
        _require_writable(option, Path(output))
    for (first, one), (second, other) in combinations(outputs.items(), 2):
        if _is_same(Path(one), Path(other)):
            raise UsageError(
                f"{first} and {second} are the same file, {str(one)!r}; name two files."
            )


def _require_writable(option: str, path: Path) -> None:
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise UsageError(
            f"Folder {str(target.parent)!r}, where {option} {str(path)!r} should go, does not "
            f"exist; make it first."
        )
    if target.is_dir():
        raise UsageError(f"{option} {str(path)!r} cannot be written: it is a folder.")
    if target.exists() and not target.is_file():
        raise UsageError(f"{option} {str(path)!r} cannot be written: it is no regular file.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"{option} {str(path)!r} cannot be written: files cannot be made in its folder."
        )


def _relation(output: Path, source: Path) -> str | None:
    """Return in words how an output would overwrite an input; None if it would not."""
    if _is_same(output, source):
        return "is the same file as"
    if output.is_dir() and _lies_in(source, output):
        return "is a folder that holds"
    if source.is_dir():
        if _lies_in(output, source):
            return "lies in"
        if output.exists() and any(_is_same(output, file) for file in _files_in(source)):
            return "is also a file of"
    return None


def _places(source: str | Path) -> list[Path]:
    """Return what an input consists of: the files of a pattern, or the file or folder itself."""
    if glob.has_magic(str(source)) and not Path(source).exists():
        return [Path(name) for name in glob.glob(str(source), recursive=True)]
    return [Path(source)]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist yet
        pass
    if one.exists() or other.exists():
        return False
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    # On some file systems, names that differ only in case mean one file.
    return first.name.casefold() == second.name.casefold() and (
        first.parent == second.parent or _is_same_folder(first.parent, second.parent)
    )


def _is_same_folder(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _lies_in(path: Path, folder: Path) -> bool:
    return any(_is_same_folder(parent, folder) for parent in Path(os.path.realpath(path)).parents)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, including those behind links, and visit each folder once."""
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # links form a cycle
            continue
        seen.add((status.st_dev, status.st_ino))
        yield from (Path(place, file) for file in files)


# Write tables to files; a file's ending decides its format, and writing is atomic.
#
# What is written means exactly the value that it was, or an error names the column, the row and
# the value. Parquet has types of its own. In CSV, and in JSON with an object per line,
#
# - times of a zone are in UTC (``1970-01-01 00:00:00Z``), and times have the digits of their unit.
#   Years beyond 1 to 9999 are those of ISO 8601 (``+10000-01-01``), which are text for most
#   readers;
# - durations are whole numbers of the column's unit, and bytes are text, if they are UTF-8;
# - decimals are digits, which JSON has in quotes, as readers take its numbers for doubles;
# - lists and structures are JSON's own, where a map is a list of keys and values. CSV has none.
#
# JSON has neither NaN nor infinities. They are written as null, with a note on standard error.

#: Writes a batch to an open file.
Write: TypeAlias = Callable[[pa.RecordBatch], object]

#: Days since 1970 of the first day of year 1, and of the last day of year 9999.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
#: Days of 400 years, after which the calendar repeats.
_CYCLE_DAYS = 146_097
#: Units of time in a day.
_TICKS = {unit: 86_400 * 1000**at for at, unit in enumerate(("s", "ms", "us", "ns"))}
_INT64 = np.iinfo(np.int64)
_SHOWN = 60


def write_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str | Path) -> int:
    """Write batches as they arrive, each in a thread while the next one is made; return their rows.

    See :func:`table_file`.
    """
    rows, written = 0, None
    with table_file(schema, path) as write, ThreadPoolExecutor(1) as thread:
        for batch in batches:
            if written is not None:
                written.result()
            written = thread.submit(write, batch)
            rows += batch.num_rows
        if written is not None:
            written.result()
    return rows


@contextmanager
def table_file(schema: pa.Schema, path: str | Path) -> Iterator[Write]:
    """Yield a function that writes a batch to a file; the ending decides the format.

    The file appears under its name when the block ends. If it raises an error, no new file
    appears, and an existing file stays unchanged.

    Raises
    ------
    UsageError
        If the format cannot hold a column, which is known before a batch is written, or a value.
    FailureError
        If the file cannot be written.
    """
    writers: dict[str, Callable[[pa.Schema, Path], AbstractContextManager[Write]]] = {
        ".parquet": _parquet_file,
        ".csv": _csv_file,
        ".json": _json_file,
    }
    writer = writers[format_of(path)]
    with atomic_output(path) as place, writer(schema, place) as write:
        yield write


@contextmanager
def _csv_file(schema: pa.Schema, place: Path) -> Iterator[Write]:
    texts = _Texts("CSV", schema)
    with place.open("wb") as stream:
        csv.write_csv(pa.RecordBatch.from_arrays(texts.empty, schema.names), stream)
        # Each batch has types of its own, as times are text where the calendar needs it.
        options = csv.WriteOptions(include_header=False)
        yield lambda batch: csv.write_csv(texts.of_rows(batch), stream, options)


@contextmanager
def _json_file(schema: pa.Schema, place: Path) -> Iterator[Write]:
    texts = _Texts("JSON", schema)
    with place.open("w", encoding="utf-8") as stream:
        yield lambda batch: stream.writelines(
            json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
            for row in texts.of_rows(batch).to_pylist()
        )
    for name, count in texts.not_finite.items():
        print(
            f"Note: column {name!r} has {count} values that are NaN or infinite, which JSON has "
            f"not; they are written as null (CSV and Parquet keep them).",
            file=sys.stderr,
        )


class _Texts:
    """Rows as a text format holds them: as columns of numbers, booleans and text.

    Parameters
    ----------
    form : str
        ``"CSV"`` or ``"JSON"``. Only JSON has lists and structures.
    schema : pa.Schema
        Columns of the rows.

    Attributes
    ----------
    empty : list of pa.Array
        Columns without rows, as they are written.
    rows : int
        Number of rows so far.
    not_finite : Counter
        Number of floats so far, by column, that JSON does not have.
    """

    def __init__(self, form: str, schema: pa.Schema) -> None:
        self.form, self.rows = form, 0
        self.not_finite: Counter[str] = Counter()
        repeated = [name for name, count in Counter(schema.names).items() if count > 1]
        if repeated and form == "JSON":
            raise UsageError(
                f"The result has several columns called {repeated[0]!r}, of which a JSON object "
                f"holds one; rename the others."
            )
        self._names = schema.names
        self.empty = self._columns(_empty(schema, form))

    def of_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the next rows as they are written."""
        columns = self._columns(batch.columns)
        self.rows += batch.num_rows
        return pa.RecordBatch.from_arrays(columns, self._names)

    def _columns(self, columns: Iterable[pa.Array]) -> list[pa.Array]:
        return [
            _Column(self, name).plain(column, np.arange(len(column), dtype=np.int64) + self.rows)
            for name, column in zip(self._names, columns, strict=True)
        ]


class _Column:
    """A column on its way into a text format."""

    def __init__(self, texts: _Texts, name: str) -> None:
        self._texts, self._name = texts, name

    def plain(self, array: pa.Array, rows: Int64s) -> pa.Array:
        """Return values, of the column or inside of its lists and structures, as they are written.

        Parameters
        ----------
        array : pa.Array
        rows : array of int64
            Number of the row that each value is in.
        """
        kind, types = array.type, pa.types
        if isinstance(kind, pa.BaseExtensionType):
            if kind.extension_name == "arrow.uuid":
                return pa.array([each and str(each) for each in array.to_pylist()], pa.string())
            return self.plain(array.storage, rows)
        if types.is_dictionary(kind):
            return self.plain(array.dictionary_decode(), rows)
        if types.is_run_end_encoded(kind):
            return self.plain(pc.run_end_decode(array), rows)
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_null(kind):
            return array
        if types.is_floating(kind):
            return array if self._texts.form == "CSV" else self._finite(array.cast(pa.float64()))
        if types.is_decimal(kind):
            return array if self._texts.form == "CSV" else array.cast(pa.string())
        if types.is_duration(kind):
            return array.cast(pa.int64())
        if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
            return self._time(array, rows)
        if _is_text(kind):
            return self._text(array, rows)
        if self._texts.form == "JSON":
            if types.is_struct(kind) and len(set(kind.names)) == kind.num_fields:
                return self._structure(array, rows)
            if types.is_map(kind):
                pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
                return self.plain(array.cast(pa.list_(pair)), rows)
            if hasattr(kind, "value_type"):
                return self._list(array, rows)
        raise UsageError(
            f"Column {self._name!r} of type {kind} cannot be written as {self._texts.form}; write "
            f"Parquet (.parquet), or leave the column out."
        )

    def _finite(self, array: pa.Array) -> pa.Array:
        finite = pc.is_finite(array)
        count = pc.sum(pc.invert(finite)).as_py() or 0
        if not count:
            return array
        self._texts.not_finite[self._name] += count
        return pc.if_else(finite, array, None)

    def _time(self, array: pa.Array, rows: Int64s) -> pa.Array:
        """Return dates, times of day or timestamps; as text where the format needs that."""
        kind = array.type
        day = _TICKS[kind.unit] if hasattr(kind, "unit") else 1
        if pa.types.is_date64(kind):
            day = _TICKS["ms"]
        low, end = _FIRST_DAY * day, (_LAST_DAY + 1) * day
        if pa.types.is_time(kind):
            low, end = 0, day
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            array = array.cast(pa.timestamp(kind.unit, "UTC"))
        plain = pa.int32() if kind.bit_width == 32 else pa.int64()
        numbers = array.cast(plain).cast(pa.int64())
        outside = pc.or_(
            pc.less(numbers, max(low, _INT64.min)), pc.greater(numbers, min(end - 1, _INT64.max))
        ).fill_null(False)
        places = np.flatnonzero(outside.to_numpy(zero_copy_only=False))
        if not len(places):
            return array if self._texts.form == "CSV" else array.cast(pa.string())
        if pa.types.is_time(kind):
            number = numbers[int(places[0])].as_py()
            self._refuse(rows[places[0]], f"{number} {kind.unit} since midnight, beyond a day")
        # The calendar repeats every 400 years, so Arrow writes everything but the year.
        cycle = _CYCLE_DAYS * day
        cycles = {at: (numbers[at].as_py() - low) // cycle for at in places.tolist()}
        near = [
            n if n is None else n - cycles.get(at, 0) * cycle
            for at, n in enumerate(numbers.to_pylist())
        ]
        texts = pa.array(near, pa.int64()).cast(plain).cast(array.type).cast(pa.string())
        return pa.array(
            [
                text if at not in cycles else _expanded(int(text[:4]) + 400 * cycles[at], text[4:])
                for at, text in enumerate(texts.to_pylist())
            ],
            pa.string(),
        )

    def _text(self, array: pa.Array, rows: Int64s) -> pa.Array:
        """Return text, or bytes that are text; Arrow's text need not be UTF-8 either."""
        try:
            return canonical_binary(array).cast(pa.large_string())
        except pa.ArrowInvalid:
            for value, row in zip(canonical_binary(array).to_pylist(), rows, strict=True):
                try:
                    (value or b"").decode()
                except UnicodeDecodeError:
                    shown = repr(value[:_SHOWN]) + "…" * (len(value) > _SHOWN)
                    self._refuse(row, f"{shown}, bytes that are no UTF-8 text")
            raise

    def _list(self, array: pa.Array, rows: Int64s) -> pa.Array:
        lengths = pc.list_value_length(array).fill_null(0).to_numpy()
        inside = np.repeat(rows, lengths)
        values = self.plain(pc.list_flatten(array), inside)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, values, mask=array.is_null())

    def _structure(self, array: pa.Array, rows: Int64s) -> pa.Array:
        if not array.type.num_fields:
            return array
        parts = [self.plain(part, rows) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, names=array.type.names, mask=array.is_null())

    def _refuse(self, row: int, what: str) -> NoReturn:
        raise UsageError(
            f"Column {self._name!r} cannot be written as {self._texts.form}: row {row} (the first "
            f"is 0) has {what}; write Parquet (.parquet), or leave the row out."
        )


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _empty(schema: pa.Schema, form: str) -> list[pa.Array]:
    """Return the columns of no rows; raises for a type that Arrow hardly knows, such as a union."""
    columns = []
    for field in schema:
        try:
            columns.append(pa.schema([field]).empty_table().column(0).combine_chunks())
        except pa.ArrowNotImplementedError as error:
            raise UsageError(
                f"Column {field.name!r} of type {field.type} cannot be written as {form}; leave "
                f"the column out."
            ) from error
    return columns


def _expanded(year: int, rest: str) -> str:
    """Return a date as ISO 8601 writes it, whose years of other than four digits have a sign."""
    return (f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}") + rest


@contextmanager
def _parquet_file(schema: pa.Schema, place: Path) -> Iterator[Write]:
    # Each batch becomes a row group, with dictionaries of its own. Those of the numbers of a join
    # took more than half of the time of writing, and made the file no smaller.
    repeated = [field.name for field in schema if not pa.types.is_primitive(field.type)]
    nothing = pa.RecordBatch.from_arrays(_empty(schema, "Parquet"), schema=schema)
    if _refusal(nothing) is not None:
        for at in range(len(schema)):
            _try_parquet(nothing.select([at]))
    writer: pq.ParquetWriter | None = None
    rows = 0

    def write(batch: pa.RecordBatch) -> None:
        nonlocal writer, rows
        if writer is None:  # the first batch decides how numbers are written
            encoding = dict.fromkeys(_narrow(batch), "BYTE_STREAM_SPLIT")
            writer = files.enter_context(
                pq.ParquetWriter(
                    place, schema, use_dictionary=repeated, column_encoding=encoding or None
                )
            )
        try:
            writer.write_batch(batch)
        except pa.ArrowException:
            for at in range(batch.num_columns):
                _try_parquet(batch.select([at]), rows)
            raise
        rows += batch.num_rows

    with ExitStack() as files:
        yield write
        if writer is None:
            write(nothing)


def _narrow(batch: pa.RecordBatch) -> list[str]:
    """Return the columns of numbers and times that take at most half of their bits.

    Their high bytes are alike, so split into bytes they are written in two thirds of the time that
    they take as they are, and the file is 0.6 times as large. As packed differences, they take as
    long to write as they are, for a file of 0.55 times. PyArrow 26, DuckDB 2.0, Polars 2.1 and
    Spark 4.3 were tried; older readers may not know such columns of whole numbers.
    """
    found = []
    names = Counter(batch.schema.names)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind, types = column.type, pa.types
        is_time = types.is_temporal(kind) and not types.is_interval(kind)
        fits = (types.is_integer(kind) or is_time) and kind.bit_width >= 32
        if fits and len(column) and names[name] == 1:
            values = integer_view(column)
            if (int(values.max()) - int(values.min())).bit_length() <= kind.bit_width // 2:
                found.append(name)
    return found


def _refusal(rows: pa.RecordBatch) -> str | None:
    """Return why Parquet cannot hold rows; None if it can."""
    try:
        pq.write_table(pa.Table.from_batches([rows]), io.BytesIO())
    except (pa.ArrowException, OSError) as error:
        return str(error).strip().split("\n", 1)[0].rstrip(".")
    return None


def _try_parquet(column: pa.RecordBatch, first_row: int = 0) -> None:
    """Raise if Parquet cannot hold a column, or the first value of it that it cannot hold."""

    name, kind = column.schema.names[0], column.schema.types[0]
    if why := _refusal(column.slice(0, 0)):
        raise UsageError(
            f"Column {name!r} of type {kind} cannot be written as Parquet ({why}); cast it to "
            f"another type, or leave the column out."
        )
    if _refusal(column):
        low, high = 0, column.num_rows  # a prefix of `low` rows can be written, one of `high` not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _refusal(column.slice(0, middle)) else (middle, high)
        raise UsageError(
            f"Column {name!r} of type {kind} cannot be written as Parquet: row {first_row + low} "
            f"(the first is 0) has a value beyond the types of Parquet "
            f"({_refusal(column.slice(low, 1))}); leave the row out."
        )
