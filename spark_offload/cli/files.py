# SPDX-License-Identifier: Apache-2.0
"""Inputs and the output of a command as Spark reads and writes them: by the executors.

A CSV or JSON file says little of what it holds, and Spark's own settings lose some of that: an
empty text becomes a null, microseconds and leading blanks are not written, a row of too few cells
is filled up. The settings here keep every value or end in an error, and read back what they have
written.
"""

import argparse
import bz2
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
import glob
import gzip
import json
import os
from pathlib import Path
import re
import secrets
from typing import Any

from py4j.protocol import Py4JError
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from host import FailureError, UsageError
from host.files.atomic import workplace
from host.files.reading import ENDINGS
from host.files.writing import require_outputs
from host.installation import command
from host.query.tables import require_distinct
from spark_offload.errors import raised, task_error
from spark_offload.partitioning.columns import quoted

__all__ = [
    "Source",
    "Target",
    "add_file_arguments",
    "csv_options_from",
]

FORMATS = {end: kind[1:] for end, kind in ENDINGS.items() if kind != ".arrow"} | {".orc": "orc"}
"""Spark's name of a format, by the ending of a file."""

MERGED_ROWS = 1 << 17
"""Rows of a row group of a file that is made of several."""

WRITTEN = (".parquet", ".csv", ".json", ".orc")
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")

_LOCAL_TIME = "yyyy-MM-dd[['T'][ ]HH:mm[:ss[.SSSSSS]]]"
_TEXT_TIMES = {"timestampNTZFormat": _LOCAL_TIME, "timestampFormat": f"{_LOCAL_TIME}[XXX][XX]"}
"""Without these, Spark takes 10:11:12 for a time of today, and cuts nanoseconds off."""

_CSV = {
    "header": "true",
    "inferSchema": "true",
    "mode": "FAILFAST",
    "multiLine": "true",
    "escape": '"',
    "enforceSchema": "false",
    # Only so a quoted empty cell is an empty text, and an empty cell a null.
    "nullValue": "\0null",
    "emptyValue": "",
    **_TEXT_TIMES,
}
_MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
_JSON = {"mode": "FAILFAST", "inferTimestamp": "true", **_TEXT_TIMES}

_WRITE_TIMES = {
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}
_WRITE = {
    "csv": {
        "header": "true",
        "escape": '"',
        "emptyValue": '""',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
        **_WRITE_TIMES,
    },
    "json": {"ignoreNullFields": "false", **_WRITE_TIMES},
}

_refusal = partial(raised, UsageError)
"""Returns an expression that ends the query with a mistake of the user's."""

_GLOB = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_HEAD_BYTES = 1 << 20


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the inputs and the result."""
    files = parser.add_argument_group(
        "files",
        "by ending: .parquet, .orc, .csv, .json (objects, one a line, or an array). An input is a "
        "file, a folder of such (with folders like day=2024-05-01 in it, day is a column), a "
        "pattern such as 'trades/*.parquet', or an address such as hdfs://... or s3a://...",
    )
    files.add_argument("--left", required=True, metavar="PATH", help="the left table")
    files.add_argument("--right", required=True, metavar="PATH", help="the right table")
    files.add_argument(
        "--output", required=True, metavar="PATH",
        help="where the result goes, whole or not at all. A name that ends in .parquet, .csv, "
        ".json or .orc is one file, which replaces one of that name; a name without an ending, or "
        "with / behind it, is a new folder of files, as Spark writes them: Parquet, or by the "
        "ending in front of the /",
    )  # fmt: skip
    files.add_argument(
        "--single-file", action=argparse.BooleanOptionalAction,
        help="write one file, through one task, or a folder of files from all tasks, whatever the "
        "name of --output",
    )  # fmt: skip
    files.add_argument(
        "--sort-by-time", action="store_true",
        help="put the whole result in the order of time: of the later row of each pair, then of "
        "the earlier one. Otherwise the rows of each task are in the order of arrival, and tasks "
        "follow one another",
    )  # fmt: skip
    files.add_argument(
        "--csv-option", action="append", default=[], metavar="NAME=VALUE",
        help="how Spark reads CSV: sep=';', encoding=ISO-8859-1, header=false, multiLine=false "
        "(several tasks for a large file without line breaks in cells), nullValue=NA and so on; "
        "schema='t BIGINT, id STRING' in place of types found in the file. May be repeated",
    )  # fmt: skip


def csv_options_from(options: argparse.Namespace) -> dict[str, str]:
    """Return the options of reading CSV that the command line gives, names in lower case.

    Raises
    ------
    UsageError
        If one is not NAME=VALUE, or is a mode that Spark would not know, and take for PERMISSIVE.
    """
    found = {}
    for text in options.csv_option:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise UsageError(f"--csv-option takes NAME=VALUE, not {text!r}.")
        found[name.strip().lower()] = value
    mode = found.get("mode", "FAILFAST")
    if mode.upper() not in _MODES:
        raise UsageError(f"--csv-option mode is one of {', '.join(_MODES)}, not {mode!r}.")
    return found


@dataclass(frozen=True)
class Source:
    """An input: files of one format.

    Parameters
    ----------
    option : str
        Option that names it.
    text : str
        What it was given.
    format : str
        Spark's name of the format.
    places : tuple of Path
        The files and folders on this machine; none of an address elsewhere.
    files : tuple of Path
        All files in them.
    paths : tuple of str
        What Spark is told to read.
    base : str or None
        Folder from which the names of folders tell columns, if that is not the one of ``paths``.
    """

    option: str
    text: str
    format: str
    places: tuple[Path, ...]
    files: tuple[Path, ...]
    paths: tuple[str, ...]
    base: str | None = None

    @classmethod
    def of(cls, option: str, text: str) -> "Source":
        """Find an input without reading it.

        Raises
        ------
        UsageError
            If nothing is there, or it is not files of one format that Spark reads.
        """
        if _is_elsewhere(text):
            kind = _format_of(text)
            if kind is None:
                raise UsageError(
                    f"{option} {text!r} must end in one of {', '.join(FORMATS)}; to read a folder "
                    f"at an address, name its files: {text.rstrip('/')}/*.parquet."
                )
            return cls(option, text, kind, (), (), (text,), _base_of(text))
        place = Path(text.removeprefix("file:"))
        given = [place]
        if not place.exists():
            given = [Path(name) for name in sorted(glob.glob(str(place), recursive=True))]
            # A pattern like ** finds a folder, and again what is in it.
            given = [one for one in given if not _is_hidden(one.name) and one != place]
            given = [one for one in given if not set(one.parents) & set(given)]
        if not given:
            what = "no file matches" if _GLOB.search(text) else "there is no such file or folder"
            raise UsageError(f"{option} {text!r} cannot be read: {what}.")
        files = [file for one in given for file in _files_at(one, option)]
        kinds = {_format_of(file.name) for file in files}
        if len(kinds) != 1 or None in kinds:
            odd = next((file for file in files if _format_of(file.name) is None), None)
            found = (
                "has no files"
                if not files
                else f"holds {str(odd)!r}, whose ending says no format"
                if odd is not None
                else f"has files of {' and '.join(sorted(map(str, kinds)))}"
            )
            raise UsageError(
                f"{option} {text!r} {found}; an input is files of one format, which end in one of "
                f"{', '.join(FORMATS)}."
            )
        (kind,) = kinds
        assert kind is not None
        paths = tuple(_escaped(one) for one in given)
        base = None if given == [place] else _base_of(os.path.abspath(place))
        return cls(option, text, kind, tuple(given), tuple(files), paths, base)

    def read(self, spark: SparkSession, csv_options: dict[str, str]) -> DataFrame:
        """Return the rows as a frame; only those of CSV and JSON are read, for their types.

        Parameters
        ----------
        spark : SparkSession
            Where; one of the command's own, whose settings this may change.
        csv_options : dict of str to str
            Options of reading CSV, names in lower case.

        Raises
        ------
        UsageError
            If Spark cannot read the files.
        """
        load = {"csv": self._csv, "json": self._json, "parquet": self._parquet}
        try:
            return load.get(self.format, self._plain)(spark, csv_options)
        except (PySparkException, Py4JError) as error:
            raise UsageError(f"{self._name} cannot be read: {task_error(error)}") from error

    @property
    def _name(self) -> str:
        return f"{self.option} {self.text!r}"

    @property
    def _no_text(self) -> str:
        encoding = ", such as --csv-option encoding=ISO-8859-1" if self.format == "csv" else ""
        return f"holds bytes that are no UTF-8; name the encoding{encoding}, or convert the file."

    def _load(
        self,
        spark: SparkSession,
        options: dict[str, str],
        schema: StructType | str | None = None,
    ) -> DataFrame:
        reader = spark.read.format(self.format).options(**options)
        if self.base is not None:
            reader = reader.option("basePath", self.base)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load(list(self.paths))

    def _plain(self, spark: SparkSession, csv_options: dict[str, str]) -> DataFrame:
        return self._load(spark, {})

    def _csv(self, spark: SparkSession, csv_options: dict[str, str]) -> DataFrame:
        given = dict(csv_options)
        schema = given.pop("schema", None)
        _require_known(spark, given)
        options = {name.lower(): value for name, value in _CSV.items()}
        if schema is not None:
            del options["inferschema"]
        if not {"sep", "delimiter"} & set(given):
            options["sep"] = self._separator()
        options |= given
        frame = self._load(spark, options, schema)
        checked = not {"encoding", "charset"} & set(given)
        if schema is not None:
            return self._readable(frame, checked)
        names = read = frame.columns
        if given.get("header", "true").lower() == "true":
            if {field.dataType for field in frame.schema} == {StringType()} and self._is_bare:
                raise UsageError(
                    f"{self._name} has no rows, and a CSV file tells the types of its columns by "
                    f"its values only; say them: --csv-option schema='{names[0]} BIGINT, ...', or "
                    f"take a Parquet file."
                )
            names, read = self._header(names, options)
            require_distinct(names, self._name)
            if checked and "\ufffd" in "".join(names):
                raise UsageError(f"The header of {self._name} {self._no_text}")
        numbers = set()
        if not {"nanvalue", "positiveinf", "negativeinf"} & set(given):
            pairs = zip(names, frame.schema, strict=True)
            numbers = {name for name, field in pairs if field.dataType == DoubleType()}
        if numbers or names != frame.columns:
            fields = [
                StructField(found, StringType() if name in numbers else field.dataType)
                for found, name, field in zip(read, names, frame.schema, strict=True)
            ]
            frame = self._load(spark, options, StructType(fields)).toDF(*names)
        return self._readable(frame, checked, numbers)

    def _json(self, spark: SparkSession, csv_options: dict[str, str]) -> DataFrame:
        heads = [_head(file).lstrip() for file in self.files]
        arrays = {head.startswith("[") for head in heads if head}
        if len(arrays) == 2:
            raise UsageError(
                f"{self._name} has files of one object a line and files of an array; read them as "
                f"two inputs, or convert either."
            )
        frame = self._load(spark, _JSON | {"multiLine": str(True in arrays).lower()})
        # Spark sorts columns by name; a user expects the order of the file.
        first = _first_object(next(filter(None, heads), ""))
        names = [name for name in first if name in frame.columns]
        rest = [name for name in frame.columns if name not in names]
        return self._readable(frame.select(*map(_column, names + rest)), checked=True)

    def _parquet(self, spark: SparkSession, csv_options: dict[str, str]) -> DataFrame:
        fine = self._nanoseconds()
        if not fine:
            return self._load(spark, {})
        spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
        frame = self._load(spark, {})
        return frame.select(
            *(
                self._microseconds(name, fine[name]).alias(name) if name in fine else _column(name)
                for name in frame.columns
            )
        )

    def _nanoseconds(self) -> dict[str, pa.DataType]:
        """Return the columns of times in nanoseconds, which Spark has not, but pandas writes."""
        if not self.files:
            return {}
        try:
            schema = pq.read_schema(self.files[0])
        except (OSError, pa.ArrowException):
            return {}  # Spark says what is wrong with it
        return {
            field.name: field.type
            for field in schema
            if pa.types.is_timestamp(field.type) and field.type.unit == "ns"
        }

    def _microseconds(self, name: str, kind: pa.DataType) -> Column:
        """Return a column of nanoseconds as the time that it is; finer ones are an error."""
        count = _column(name)
        micros = F.call_function("div", count - F.pmod(count, F.lit(1000)), F.lit(1000))
        if kind.tz is not None:
            time = F.timestamp_micros(micros)
        else:
            epoch = F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
            time = F.timestamp_add("MICROSECOND", micros, epoch)
        return F.when(F.pmod(count, F.lit(1000)) != 0, _refusal(
            f"Column {name!r} of {self._name} holds times finer than a microsecond, which Spark "
            f"has not; round them, or use `{command('host join')}`."
        )).otherwise(time)  # fmt: skip

    def _readable(
        self, frame: DataFrame, checked: bool, numbers: Collection[str] = ()
    ) -> DataFrame:
        """Return a frame that fails where different values would be read as equal ones.

        Spark reads bytes that are no text as U+FFFD. It takes whole numbers for doubles if they
        have more than 38 digits, or stand beside fractions; doubles hold 15 digits.

        Parameters
        ----------
        frame : DataFrame
            What was read.
        checked : bool
            Whether text is looked at.
        numbers : collection of str
            Columns of text that are doubles.
        """
        columns = []
        for field in frame.schema:
            column, name = _column(field.name), f"Column {field.name!r} of {self._name}"
            if field.name in numbers:
                is_long = (F.length(column) > 15) & column.rlike(r"^[+-]?\d{16,}$")
                column = F.when(is_long, _refusal(
                    f"{name} holds whole numbers of more than 15 digits, and other ones, or some "
                    f"of more than 38 digits, which make it a double that does not tell them "
                    f"apart; say what it is: --csv-option schema='{field.name} STRING, ...'."
                )).otherwise(column.cast(DoubleType()))  # fmt: skip
            elif checked and field.dataType == StringType():
                column = F.when(column.contains("\ufffd"), _refusal(
                    f"{name} {self._no_text}"
                )).otherwise(column)  # fmt: skip
            columns.append(column.alias(field.name))
        return frame.select(*columns)

    def _header(
        self, found: Sequence[str], options: Mapping[str, str]
    ) -> tuple[list[str], list[str]]:
        """Return the names of columns as the header has them, and as Spark finds them there.

        Spark gives numbers to empty names and to those that stand twice, and then misses them in
        the header, where an empty cell is to it what it is in a row.

        Parameters
        ----------
        found : sequence of str
            The names that Spark has given; columns from the names of folders come last.
        options : mapping of str to str
            Options of reading CSV.
        """
        cells = self._first_line().split(options.get("sep") or options["delimiter"])
        names = list(found)
        for place, (name, cell) in enumerate(zip(found, cells, strict=False)):
            bare = cell.strip('"')
            if name == f"{bare or '_c'}{place}":
                names[place] = bare
        empty = options["emptyvalue"] if '""' in cells else options["nullvalue"]
        return names, [name or empty for name in names]

    def _first_line(self) -> str:
        lines = "".join(map(_head, self.files[:1])).strip("\r\n").splitlines()
        return lines[0] if lines else ""

    @property
    def _is_bare(self) -> bool:
        """Whether each file is a header without a row."""
        lines = (_head(file).strip().splitlines() for file in self.files)
        return bool(self.files) and all(len(found) == 1 for found in lines)

    def _separator(self) -> str:
        """Return what is between cells, by the first line: a comma unless another is oftener."""
        bare = re.sub(r'"[^"]*"', "", self._first_line())
        return max(",;\t|", key=bare.count)


@dataclass(frozen=True)
class Target:
    """Output of a command: a file or a folder, and its format.

    Parameters
    ----------
    text : str
        What ``--output`` was given.
    format : str
        Spark's name of the format.
    single : bool
        Whether it is one file.
    """

    text: str
    format: str
    single: bool

    @classmethod
    def of(cls, text: str, single: bool | None) -> "Target":
        """Return what a name means: a file or a folder, unless that is said.

        Raises
        ------
        UsageError
            If the name does not say the format.
        """
        ending = Path(text).suffix.lower()
        if ending in WRITTEN:
            as_file = not text.endswith("/") if single is None else single
            return cls(text, FORMATS[ending], as_file)
        if single or (single is None and ending and not text.endswith("/")):
            raise UsageError(
                f"--output {text!r} must end in one of {', '.join(WRITTEN)}, as a file; a folder "
                f"of Parquet files has no ending, or / behind its name."
            )
        return cls(text, "parquet", False)

    def require(
        self,
        sources: Collection[Source],
        *,
        outputs: Mapping[str, Path],
        inputs: Mapping[str, Path],
    ) -> None:
        """Raise unless this and other outputs can be written, and nothing but files goes by it.

        Parameters
        ----------
        sources : collection of Source
            The inputs that are tables.
        outputs : mapping of str to Path
            What is written besides, by option.
        inputs : mapping of str to Path
            What is read besides, by option.

        Raises
        ------
        UsageError
            If something is in the way.
        """
        written = dict(outputs)
        if not _is_elsewhere(self.text):
            if not self.single and self._place.exists():
                raise self._exists()
            written["--output"] = self._place
        require_outputs(written, inputs)
        for source in sources:
            for place in source.places:
                require_outputs(written, {source.option: place})

    @contextmanager
    def staged(self, spark: SparkSession) -> Iterator[str]:
        """Yield where to write a folder; what was written gets its name when the body has ended.

        Raises
        ------
        FailureError
            If there is not one file where there should be.
        """
        if _is_elsewhere(self.text):
            yield from self._staged_elsewhere(spark)
            return
        place = Path(os.path.realpath(self._place))
        with workplace(place.parent, place.name) as work:
            rows = work / "rows"
            yield str(rows)
            if not self.single:
                rows.rename(place)
                return
            parts = sorted(rows.glob("part-*"))
            if self.merges and len(parts) > 1:
                _merge(parts, work / place.name)
                parts = [work / place.name]
            self._only(parts).replace(place)

    def _staged_elsewhere(self, spark: SparkSession) -> Iterator[str]:
        """Do the same where only Hadoop's file systems reach.

        There a file that exists cannot be replaced in one step: it is removed first.
        """
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path
        target = path(self.text)
        system = target.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        if not self.single and system.exists(target):
            raise self._exists()
        work = path(target.getParent(), f".{target.getName()}.{secrets.token_hex(8)}.partial")
        try:
            yield work.toString()
            written = work
            if self.single:
                files = [status.getPath() for status in system.listStatus(work)]
                written = self._only(file for file in files if file.getName().startswith("part-"))
                if system.exists(target):
                    system.delete(target, False)
            if not system.rename(written, target):
                raise FailureError(f"Writing {self.text!r} failed: it cannot be given its name.")
        finally:
            system.delete(work, True)

    @property
    def merges(self) -> bool:
        """Whether the files that Spark has written, in their order, are made one here."""
        return self.single and self.format == "parquet" and not _is_elsewhere(self.text)

    @property
    def _place(self) -> Path:
        return Path(self.text.removeprefix("file:"))

    def _only(self, files: Iterable[Any]) -> Any:
        found = list(files)
        if len(found) != 1:
            raise FailureError(
                f"Writing {self.text!r} failed: Spark wrote {len(found)} files; take "
                f"--no-single-file."
            )
        return found[0]

    def _exists(self) -> UsageError:
        return UsageError(
            f"--output {self.text!r} exists; a folder of files is made anew: name another, or "
            f"remove it first."
        )

    def write(self, frame: DataFrame, place: str) -> None:
        """Let the executors write ``frame``; ``place`` is that of :meth:`staged`.

        Raises
        ------
        UsageError
            If the format cannot hold a column.
        """
        try:
            writer = frame.write.format(self.format).options(**_WRITE.get(self.format, {}))
            writer.save(place)
        except AnalysisException as error:
            raise UsageError(
                f"The result cannot be written as {self.format}: {task_error(error)}; write "
                f"Parquet."
            ) from error

    def read_back(self, spark: SparkSession, schema: StructType, place: str) -> DataFrame:
        """Return what was written."""
        options = {"csv": _CSV, "json": _JSON}.get(self.format, {})
        return spark.read.format(self.format).options(**options).schema(schema).load(place)


def _merge(parts: Sequence[Path], target: Path) -> None:
    """Write the rows of Parquet files of one schema to one file, a row group at a time."""
    with pq.ParquetWriter(target, pq.read_schema(parts[0])) as writer:
        for part in parts:
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches(MERGED_ROWS):
                    writer.write_batch(batch)


def _require_known(spark: SparkSession, names: Collection[str]) -> None:
    """Raise for an option of reading CSV that Spark has not; Spark itself says nothing of it."""
    jvm: Any = spark._jvm
    known = jvm.org.apache.spark.sql.catalyst.csv.CSVOptions.getAllOptions().mkString(" ").split()
    odd = next((name for name in names if name not in {one.lower() for one in known}), None)
    if odd is not None:
        raise UsageError(
            f"--csv-option {odd}=... is none of Spark's for CSV, which are "
            f"{', '.join(sorted(known))}."
        )


def _is_elsewhere(text: str) -> bool:
    return _SCHEME.match(text) is not None and not text.startswith("file:")


def _format_of(name: str) -> str | None:
    lower = name.lower()
    for ending in COMPRESSED:
        lower = lower.removesuffix(ending)
    return FORMATS.get(Path(lower).suffix)


def _is_hidden(name: str) -> bool:
    """Whether a file is one of those in which whoever writes folders of files keeps notes."""
    return name.startswith((".", "_")) and "=" not in name


def _files_at(place: Path, option: str) -> Iterator[Path]:
    """Yield a file, or those in a folder that Spark reads: in it, and in folders like day=1."""
    if not place.is_dir():
        yield place
        return
    for child in sorted(place.iterdir()):
        if _is_hidden(child.name):
            continue
        if child.is_file():
            yield child
        elif "=" in child.name:
            yield from _files_at(child, option)
        elif any(child.rglob("*.*")):
            raise UsageError(
                f"{option} {str(place)!r} has the folder {child.name!r}, which Spark would leave "
                f"out, as its name is not like day=2024-05-01; name files: "
                f"'{place}/**/*{next(iter(FORMATS))}'."
            )


def _base_of(pattern: str) -> str | None:
    """Return the folder in front of a pattern, from where names of folders tell columns."""
    found = _GLOB.search(pattern)
    if found is None:
        return None
    return pattern[: found.start()].rpartition("/")[0] or "/"


def _escaped(place: Path) -> str:
    """Return a path as Spark takes it, which reads signs of patterns in it."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(place.absolute()))


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _head(file: Path) -> str:
    """Return the beginning of a file of text; nothing if it cannot be read."""
    opened: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        with opened.get(file.suffix, open)(file, "rb") as stream:
            return str(stream.read(_HEAD_BYTES), "utf-8-sig", "replace")
    except (OSError, EOFError):
        return ""


def _first_object(head: str) -> list[str]:
    """Return the names in the first object of a JSON file; none if it is not all there."""
    try:
        first, _ = json.JSONDecoder().raw_decode(head.lstrip("[ \t\r\n"))
    except ValueError:
        return []
    return list(first) if isinstance(first, dict) else []
