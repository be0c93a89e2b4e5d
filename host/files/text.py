# SPDX-License-Identifier: Apache-2.0
"""Read CSV and JSON in batches, with the types that all of a file's values have.

What a CSV file means
    A cell that is empty is null, and ``""`` in quotes is a text without characters. The type of a
    column follows from all of its cells: integers, booleans, dates, times, numbers, or text. Whole
    numbers never become floating point: those beyond 64 bits stay text. In a column that is not
    text, :data:`MISSING` stand for null too. The separator is found in the first lines, and
    :class:`CsvOptions` say what cannot be found.

Types
    A file is read once before its rows are wanted, batch by batch, to find the types. The first
    cells give the types that the parser is asked for. Only where a later cell does not agree is the
    file read once more, with all of the types that cells can have tried on each batch.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
import csv as plain_csv
from dataclasses import dataclass, fields, replace
import io
from itertools import chain
import json
from pathlib import Path
import re
import shlex
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import json as arrow_json
import pyarrow.compute as pc

from host.errors import UsageError

__all__ = [
    "CsvFile",
    "CsvOptions",
    "JsonFile",
    "MISSING",
    "csv_options",
    "first_line",
    "inferred",
    "reading_file",
]

#: What stands for null in columns of a CSV file that are not text, besides an empty cell.
MISSING = (
    "NA", "N/A", "n/a", "NULL", "null", "#N/A", "#N/A N/A", "#NA",
    "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN",
)  # fmt: skip
_NAMES = {".parquet": "Parquet", ".csv": "CSV", ".json": "JSON", ".arrow": "Arrow"}
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
#: Types that Arrow finds by itself, in the order in which it tries them.
_FOUND = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(),
)  # fmt: skip
#: Types that Arrow does not find by itself: it takes fractions of a second for nanoseconds, which
#: 64 bits hold until 2262, and finds no times of day with fractions.
_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.time64("ns"))
_WHOLE = (pa.int64(), pa.uint64())
_VALUE = re.compile(r"[^ \t\r\n]")
#: A line that holds null in place of an object. Arrow takes it for a row without values, but ends
#: the process where it comes first.
_NULL_LINE = re.compile(rb"(?:\A|}[ \t\r]*\n)\s*null\b")
_ROW_OF_BLOCK = re.compile(r"\.? in row (\d+)$")
#: Signs that may stand behind a sign of a JSON array, and whether a value may.
_BEHIND = {"[": ("]", True), ",": ("", True), "]": ("", False)}
#: Rows of a CSV file whose cells are the first ones to give the types.
_FIRST_ROWS = 1 << 10
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SHOWN = 40


# What is told of CSV files.


@dataclass(frozen=True)
class CsvOptions:
    """Format of CSV files, as far as it is known before they are read.

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


# The types that cells can be read as.


@dataclass(frozen=True)
class _Reading:
    """A way to read the cells of a column.

    Parameters
    ----------
    dtype : DataType
        Type of the values.
    is_direct : bool
        Whether the parser finds the values itself: cells that are null are those of the options.
        Otherwise it finds texts, and :data:`MISSING` are null too.
    """

    dtype: pa.DataType
    is_direct: bool = False

    def values(self, cells: pa.Array, options: CsvOptions) -> pa.Array:
        """Return the values of cells; raises ``pa.ArrowInvalid`` if a cell has another type."""
        if not self.is_direct:
            cells = _without_blanks(cells, options)
            if self.dtype in (*_WHOLE, pa.string()) and not _are_digits(cells):
                raise pa.ArrowInvalid("a cell is no whole number")
        return cells if pa.types.is_string(self.dtype) else _converted(cells, self.dtype, options)


_TEXT = _Reading(pa.string(), is_direct=True)
#: Integers of more digits than 64 bits hold.
_LONG = _Reading(pa.string())
_READINGS = (
    *(_Reading(dtype, is_direct=True) for dtype in _FOUND),
    *(_Reading(dtype) for dtype in (*_WHOLE, *_FOUND[2:], *_TIMES)),
)


class _Cells:
    """What the cells of a column can be read as, by all of them that were seen.

    Attributes
    ----------
    is_large : bool
        Whether a number was as large as integers that 64 bits do not hold.
    """

    def __init__(self, options: CsvOptions) -> None:
        self._options = options
        self._alive = list(_READINGS)
        self._begin = ""
        self._digits = True
        self._has_blanks = False
        self.is_large = False

    def see(self, cells: pa.Array) -> None:
        """Look at the next cells, as texts."""
        plain = _without_blanks(cells, self._options)
        alike = plain.null_count == cells.null_count
        self._has_blanks |= not alike
        if not self._begin:
            self._begin = next((cell for cell in plain.drop_null()[:1].to_pylist()), "")
        self._digits = self._digits and _are_digits(plain)
        known: dict[tuple[pa.DataType, bool], bool] = {}
        for reading in self._alive:
            key = reading.dtype, reading.is_direct and not alike
            if key not in known:
                known[key] = self._fits(cells if reading.is_direct else plain, reading)
        self._alive = [
            each for each in self._alive if known[each.dtype, each.is_direct and not alike]
        ]

    def _fits(self, cells: pa.Array, reading: _Reading) -> bool:
        try:
            values = _converted(cells, reading.dtype, self._options)
        except pa.ArrowInvalid:
            return False
        self.is_large |= _may_be_integers(values)
        return True

    @property
    def time(self) -> _Reading | None:
        """The way that all cells are times which Arrow does not find; None if they are not."""
        if self._has_blanks or not _TIME.match(self._begin):
            return None
        return next((each for each in self._alive if each.dtype in _TIMES), None)

    @property
    def is_typed(self) -> bool:
        """Whether there was a cell that stands for a value, which may be one of a type."""
        return bool(self._begin)

    @property
    def reading(self) -> _Reading:
        """The way that all cells can be read in."""
        direct = next((each for each in self._alive if each.is_direct), None)
        if direct is not None and not (
            direct.dtype == pa.float64() and self.is_large and self._digits
        ):
            return direct
        if not _TYPED.match(self._begin):
            return _TEXT
        others = [each for each in self._alive if not each.is_direct]
        if self._digits:
            return next((each for each in others if each.dtype in _WHOLE), _LONG)
        for each in others:
            if each.dtype not in (*_WHOLE, *_TIMES) or (
                each.dtype in _TIMES and _TIME.match(self._begin)
            ):
                return each
        return _TEXT


def inferred(cells: pa.Array) -> pa.Array:
    """Return texts as values of the type that a column of a CSV file with these cells has."""
    seen = _Cells(CsvOptions())
    seen.see(cells)
    return seen.reading.values(cells, CsvOptions())


def _are_digits(cells: pa.Array) -> bool:
    """Return whether cells that are not null are digits, perhaps behind a sign."""
    digits = pc.match_substring_regex(pc.utf8_trim_whitespace(cells), _DIGITS)
    return pc.all(digits).as_py() is not False


def _without_blanks(cells: pa.Array, options: CsvOptions) -> pa.Array:
    """Return cells with nulls where there is nothing, or what stands for nothing."""
    blank = pc.is_in(cells, value_set=pa.array(["", *MISSING, *options.null]))
    return pc.if_else(blank, pa.scalar(None, cells.type), cells)


def _converted(cells: pa.Array, dtype: pa.DataType, options: CsvOptions) -> pa.Array:
    """Return texts in a type, as the parser of CSV files finds it; nulls stay null."""
    buffer = io.BytesIO()
    csv.write_csv(pa.record_batch({"cells": cells}), buffer)
    read = csv.read_csv(
        pa.BufferReader(buffer.getbuffer()),
        csv.ReadOptions(block_size=max(_BLOCK, 2 * buffer.tell())),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types={"cells": dtype},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=options.decimal,
        ),
    )
    column = read.column(0).combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _may_be_integers(values: pa.Array) -> bool:
    """Return whether values are doubles as large as integers beyond 64 bits."""
    if not pa.types.is_floating(values.type):
        return False
    edges = pc.min_max(values).as_py()
    return any(abs(edge) >= _INTEGERS_END for edge in edges.values() if edge is not None)


# CSV.


class CsvFile:
    """A CSV file, whose rows are read in batches.

    Parameters
    ----------
    path : Path
        The file.
    options : CsvOptions
        What is known of it.

    Attributes
    ----------
    schema : pa.Schema
        Columns, with the types that all cells have.
    rows : int
        Number of rows.

    Raises
    ------
    UsageError
        If the file is missing, or is no CSV file.
    """

    def __init__(self, path: Path, options: CsvOptions) -> None:
        self._path, self._block = path, _BLOCK
        self.rows: int | None = None
        self._whole: bytes | None = None
        with reading_file(path, ".csv", options.encoding):
            with _stream(path) as stream:
                head = stream.read(_SAMPLE)
            ended = len(head) < _SAMPLE
            sample = head.decode(options.encoding, errors="replace").removeprefix("\ufeff")
            lines = list(io.StringIO(sample, newline=""))[options.skip :]
            # A header alone is a table without rows only if its line ends.
            if ended and len(lines) == 1 and not lines[0].endswith(("\n", "\r")):
                self._whole = head + "\n".encode(options.encoding).removeprefix(b"\xff\xfe")
            separator = options.delimiter or _separator(lines, options, ended)
            self._options = replace(options, delimiter=separator)
            while True:
                try:
                    self._settle()
                    return
                except pa.ArrowInvalid as error:
                    if not _is_block_too_small(error) or self._block >= _LARGEST_BLOCK:
                        raise
                    self._block *= 8

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some of their columns."""
        wanted = self.schema.names if columns is None else list(columns)
        places = [self.schema.get_field_index(name) for name in wanted]
        schema = self.schema if columns is None else pa.schema(map(self.schema.field, places))
        readings = [self._readings[place] for place in places]
        with reading_file(self._path, ".csv", self._options.encoding):
            for batch in self._parsed(self._readings, columns):
                found = [
                    column if reading.is_direct else reading.values(column, self._options)
                    for column, reading in zip(batch.columns, readings, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(found, schema=schema)

    def _settle(self) -> None:
        """Find the types of all columns, and count the rows."""
        with self._open() as stream:
            self._names = csv.open_csv(stream, *self._settings({}, None)).schema.names
        texts = [_TEXT] * len(self._names)
        first = next(self._parsed(texts), None)
        cells = [_Cells(self._options) for _ in self._names]
        if first is not None:
            self._see(cells, first.slice(0, _FIRST_ROWS))
        if not (self._is_certain(cells) and self._agreed(cells)):
            cells = [_Cells(self._options) for _ in self._names]
            for batch in self._parsed(texts):
                self._see(cells, batch)
            if not self._agreed(cells):
                raise ValueError("its cells are of other types each time that they are read")
        self.schema = pa.schema(
            [(name, each.dtype) for name, each in zip(self._names, self._readings, strict=True)]
        )

    def _see(self, cells: Sequence[_Cells], batch: pa.RecordBatch) -> None:
        for name, seen, column in zip(self._names, cells, batch.columns, strict=True):
            if not self._is_text(name):
                seen.see(column)

    def _is_text(self, name: str) -> bool:
        """Return whether a column is said to be text, or is one of several with its name."""
        return name in self._options.text or self._names.count(name) > 1

    def _is_certain(self, cells: Sequence[_Cells]) -> bool:
        """Return whether later cells can only contradict what the first ones say."""
        return all(
            seen.is_typed or seen.reading is not _TEXT or self._is_text(name)
            for name, seen in zip(self._names, cells, strict=True)
        )

    def _agreed(self, cells: Sequence[_Cells]) -> bool:
        """Take the types of the cells that were seen; return whether all cells are of these."""
        self._readings = [
            _TEXT if self._is_text(name) else seen.reading
            for name, seen in zip(self._names, cells, strict=True)
        ]
        rows, last = 0, None
        try:
            for batch in self._parsed(self._readings):
                for seen, reading, column in zip(cells, self._readings, batch.columns, strict=True):
                    if not reading.is_direct:
                        reading.values(column, self._options)
                    elif _may_be_integers(column) and not seen.is_large:
                        return False
                rows += batch.num_rows
                last = batch if batch.num_rows else last
        except pa.ArrowInvalid as error:
            if _is_block_too_small(error):
                raise
            return False
        self.rows = rows
        if last is not None and last.num_columns:
            self._require_last_quote(last.column(last.num_columns - 1)[-1].as_py())
        return True

    def _parsed(
        self, readings: Sequence[_Reading], columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what the parser finds: values where it finds them itself, and texts elsewhere."""
        types = {
            name: reading.dtype if reading.is_direct else pa.string()
            for name, reading in zip(self._names, readings, strict=True)
        }
        with self._open() as stream:
            yield from csv.open_csv(stream, *self._settings(types, columns))

    def _settings(self, types: Mapping[str, pa.DataType], columns: Sequence[str] | None) -> Any:
        options = self._options
        return (
            csv.ReadOptions(
                encoding=options.encoding, skip_rows=options.skip, block_size=self._block
            ),
            csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=False if options.quote == "none" else options.quote,
                escape_char=options.escape or False,
                newlines_in_values=True,
            ),
            csv.ConvertOptions(
                null_values=["", *options.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=options.decimal,
                column_types=types,
                include_columns=columns,
            ),
        )

    def _open(self) -> Any:
        if self._whole is not None:
            return pa.BufferReader(self._whole)
        return _stream(self._path)

    def _require_last_quote(self, last: object) -> None:
        """Raise if the last cell has swallowed the rest of the file, as its quote has no end."""
        if not isinstance(last, str) or "\n" not in last or self._options.quote == "none":
            return
        tail = b""
        with self._open() as stream:
            while block := stream.read(_BLOCK):
                tail = (tail + block)[-64:]
        text = tail.decode(self._options.encoding, errors="ignore").rstrip()
        if not text.endswith(self._options.quote):
            begin = last.split("\n", 1)[0][:_SHOWN]
            raise ValueError(f"the quote before {begin!r} in the last row has no end")


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


def _is_block_too_small(error: pa.ArrowInvalid) -> bool:
    return "straddl" in str(error)


# JSON.


class JsonFile:
    """A JSON file, whose rows are read in batches: one object per line, or one array of objects.

    Types are found as Arrow finds them in the whole file, but for whole numbers that 64 bits do
    not hold, and for times, which are those of CSV files.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    schema : pa.Schema
        Columns, with the types that all values have.
    rows : int
        Number of rows.

    Raises
    ------
    UsageError
        If the file is missing, or is no JSON file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading_file(path, ".json"):
            self._settle()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some of their columns."""
        wanted = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in wanted])
        with reading_file(self._path, ".json"):
            for lines in self._lines():
                rows = _objects_of(lines, self._plain)
                found = [self._values(name, rows, lines) for name in wanted]
                yield pa.RecordBatch.from_arrays(found, schema=schema)

    def _values(self, name: str, rows: pa.RecordBatch, lines: bytes) -> pa.Array:
        """Return a column in its type."""
        reading = self._readings.get(name)
        if reading is None:
            return rows.column(name)
        cells = _numbers(name, lines) if name in self._numbers else rows.column(name)
        assert cells is not None  # as they were when the types were found
        return reading.values(cells, CsvOptions())

    def _settle(self) -> None:
        """Find the types of all columns, and count the rows."""
        self._plain, rows_of_all = pa.schema([]), 0
        self._readings: dict[str, _Reading] = {}
        large: dict[str, None] = {}
        for lines in self._lines():
            rows = _objects_of(lines, before=rows_of_all)
            self._plain = _all_fields(self._plain, rows.schema)
            rows_of_all += rows.num_rows
            columns = zip(rows.schema.names, rows.columns, strict=True)
            large.update(dict.fromkeys(name for name, each in columns if _may_be_integers(each)))
        self.rows: int | None = rows_of_all
        texts = [field.name for field in self._plain if pa.types.is_string(field.type)]
        self._numbers = [
            name for name in large if pa.types.is_floating(self._plain.field(name).type)
        ]
        if texts or self._numbers:
            self._look(texts)
        self.schema = pa.schema(
            [
                (field.name, self._readings[field.name].dtype)
                if field.name in self._readings
                else field
                for field in self._plain
            ]
        )

    def _look(self, texts: Sequence[str]) -> None:
        """Find out which texts are times, and which doubles are whole numbers."""
        cells = {name: _Cells(CsvOptions()) for name in (*texts, *self._numbers)}
        for lines in self._lines():
            rows = _objects_of(lines, self._plain)
            for name in list(cells):
                found = _numbers(name, lines) if name in self._numbers else rows.column(name)
                if found is None:
                    del cells[name]
                else:
                    cells[name].see(found)
        self._numbers = [name for name in self._numbers if name in cells]
        for name, seen in cells.items():
            if name in self._numbers:
                self._readings[name] = seen.reading
            elif (time := seen.time) is not None:
                self._readings[name] = time

    def _lines(self) -> Iterator[bytes]:
        """Yield the objects as lines, in blocks."""
        with _stream(self._path) as stream:
            begin = stream.read(_SAMPLE).removeprefix(b"\xef\xbb\xbf")
            rest = iter(lambda: stream.read(_BLOCK), b"")
            blocks = chain([begin], rest)
            if begin.lstrip().startswith(b"["):
                yield from _lines_of_array(blocks)
                return
            held = b""
            for block in blocks:
                lines, end, behind = block.rpartition(b"\n")
                if (held + lines).strip():
                    yield held + lines + end
                held = behind if end else held + block
            if held.strip():
                yield held


def _lines_of_array(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the objects of an array as lines, in blocks."""
    decoder, texts = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")()
    text, at = "", 0
    signs, is_value = "[", False  # what may come next
    for block in chain(blocks, [b""]):
        text, at = text[at:] + texts.decode(block, not block), 0
        lines: list[str] = []
        while (found := _VALUE.search(text, at)) is not None:
            at = found.start()
            sign = text[at]
            if sign in signs:
                signs, is_value = _BEHIND[sign]
                at += 1
                continue
            if not is_value:
                wanted = f"one of {signs}" if signs else "its end"
                raise ValueError(f"the array has {text[at : at + _SHOWN]!r} in place of {wanted}")
            try:
                value, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                if not block:
                    raise
                break  # the object ends in a later block
            if not isinstance(value, dict):
                raise ValueError("the array holds something that is no object")
            lines.append(json.dumps(value) + "\n")
            signs, is_value = ",]", False
        if lines:
            yield "".join(lines).encode()
    if signs or is_value:
        raise ValueError("the array has no end")


def _objects_of(
    lines: bytes, schema: pa.Schema | None = None, *, before: int = 0
) -> pa.RecordBatch:
    """Return objects, one a line, as rows; their types are found unless they are known.

    Errors count the rows of the file, of which so many come ``before`` these.
    """
    if _NULL_LINE.search(lines):
        raise ValueError("a line holds null, which is no object")
    try:
        table = arrow_json.read_json(
            pa.BufferReader(lines),
            arrow_json.ReadOptions(block_size=max(_BLOCK, len(lines) + 1)),
            arrow_json.ParseOptions(explicit_schema=schema),
        )
    except pa.ArrowInvalid as error:
        place = _ROW_OF_BLOCK.sub(
            lambda found: f" in row {int(found[1]) + before} (the first is 0)", first_line(error)
        )
        raise ValueError(place) from error
    table.validate(full=True)  # PyArrow does not check that text is UTF-8
    return table.combine_chunks().to_batches()[0]


def _numbers(name: str, lines: bytes) -> pa.Array | None:
    """Return the numbers of a column as they are written; None if one of them is not whole."""
    values = [json.loads(line).get(name) for line in lines.splitlines() if line.strip()]
    if not all(value is None or isinstance(value, int) for value in values):
        return None
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _all_fields(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return the fields of both schemas, each with the type that holds the values of both."""
    found = {field.name: field.type for field in one}
    for field in other:
        found[field.name] = _of_both(found.get(field.name, pa.null()), field.type, field.name)
    return pa.schema(found)


def _of_both(one: pa.DataType, other: pa.DataType, name: str) -> pa.DataType:
    """Return the type that a column has whose values are of two types in two blocks."""
    types = pa.types
    if types.is_struct(one) and types.is_struct(other):
        return pa.struct(list(_all_fields(pa.schema(list(one)), pa.schema(list(other)))))
    if types.is_list(one) and types.is_list(other):
        return pa.list_(_of_both(one.value_type, other.value_type, name))
    if any(map(types.is_timestamp, (one, other))) and any(map(types.is_string, (one, other))):
        return pa.string()
    try:
        schemas = [pa.schema([("", dtype)]) for dtype in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        raise ValueError(f"column {name!r} changes from {one} to {other}") from None


# Errors.


def _stream(path: Path) -> pa.NativeFile:
    """Open a file, and uncompress it if its ending says that it is compressed."""
    return pa.input_stream(str(path.absolute()), compression="detect")


@contextmanager
def reading_file(path: Path, kind: str, encoding: str = "utf-8") -> Iterator[None]:
    """Turn errors of reading a file of a format into those that users see."""
    try:
        yield
    except FileNotFoundError as error:
        raise UsageError(f"File {str(path)!r} cannot be read: No such file.") from error
    except OSError as error:
        # PyArrow also raises OSError for invalid content.
        reason = error.strerror or first_line(error)
        raise UsageError(f"File {str(path)!r} cannot be read: {reason}.") from error
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        is_text = kind in (".csv", ".json")
        advice = ""
        if kind == ".csv":
            advice = "; if cells are separated or quoted in another way, tell it by --csv-option"
        raise (_encoding_error(path, encoding, kind) if is_text else None) or UsageError(
            f"File {str(path)!r} is not valid {_NAMES[kind]}: {first_line(error)}{advice}."
        ) from error


def _encoding_error(path: Path, encoding: str, kind: str) -> UsageError | None:
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
                text = line[begin : begin + _SHOWN].rstrip()
                return _not_utf8(path, number, text, is_utf16=is_utf16, kind=kind)
    return None


def _not_utf8(path: Path, line: int, text: bytes, *, is_utf16: bool, kind: str) -> UsageError:
    charset = "UTF-16" if is_utf16 else "LATIN1"
    guess = "as it begins like UTF-16" if is_utf16 else "for example from Latin-1"
    copy = path.with_name(f"{path.stem}-utf8{path.suffix}")
    command = f"iconv -f {charset} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(str(copy))}"
    option = f" (of a CSV file, --csv-option encoding={charset.lower()} does it)"
    return UsageError(
        f"File {str(path)!r} is not UTF-8: line {line} has {text!r}; convert it to UTF-8, {guess}: "
        f"`{command}`{option if kind == '.csv' else ''}."
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without the full stop."""
    return str(error).strip().split("\n", 1)[0].rstrip(".")
