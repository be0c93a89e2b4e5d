# SPDX-License-Identifier: Apache-2.0
"""Command-line options that describe a join, the same for every command that joins."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import floor
from pathlib import Path
import re
from typing import Any

import pyarrow as pa

from host.cli.command import Status, add_memory, memory_of
from host.errors import UnsupportedTypeError, UsageError
from host.files.reading import Dataset, files_of, format_of, input_format, require_text
from host.files.text import CsvOptions, csv_options
from host.files.writing import require_outputs
from host.pipeline.inputs import OrderedInput
from host.query.ordering import FORMS, parse_ordering
from host.query.quantities import Duration, parse_duration
from host.query.queries import OnFailure, Query, Term
from host.query.words import RENAMED, Span, Within
from host.reference.types import JoinType

__all__ = [
    "FILES",
    "INPUT",
    "add_checks",
    "add_column_options",
    "add_csv_options",
    "add_file_arguments",
    "add_input_arguments",
    "add_join_arguments",
    "add_other_words",
    "add_output",
    "add_question",
    "add_query_arguments",
    "add_sorted",
    "add_suffix",
    "column_pair",
    "csv_options_of",
    "naming_cells",
    "ordered_inputs",
    "parse_length",
    "parse_span",
    "positive_integer",
    "query_from",
    "read_input",
    "require_output",
]

#: What the help says of files.
FILES = "by ending: .parquet, .csv, .json (lines or array); text that is read may be compressed"
INPUT = "a file, a folder of files (also of folders KEY=VALUE), or a quoted pattern, 'data/*.csv'"

_ESCAPED = r"a colon in a name is written \:"
#: A number, a truth value, a date, or a time as CSV files have them.
_TYPED = re.compile(
    r"\s*([+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf)|true|false|"
    r"(\d{4}-\d\d-\d\d)?[ T]?(\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)\s*",
    re.IGNORECASE,
)
_SHOWN = 40
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def add_join_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a join of files; :func:`query_from` reads them."""
    add_file_arguments(parser)
    add_query_arguments(parser)


def add_query_arguments(
    parser: argparse.ArgumentParser, *, against: str = "the reference join"
) -> None:
    """Add the options that describe a join and how to run it, without its files.

    Parameters
    ----------
    parser : ArgumentParser
        Where to add them.
    against : str
        What ``--verify`` compares the result with.
    """
    add_question(parser)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--device", metavar="URI",
        help="software: (the software engine), sim: (the simulated accelerator that suits the "
        "query), sim:BUNDLE, software:BUNDLE or a board; default: what the variable "
        "SPLITJOIN_DEVICE names, else software:",
    )  # fmt: skip
    run.add_argument(
        "--build", action="store_true",
        help="with --device sim:, build a bundle where none here is large enough for the query, or "
        "one that decides --where if nothing else bounds the pairs on both sides",
    )  # fmt: skip
    add_checks(run, against, "say how the join is run")
    add_other_words(parser)


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a join asks; :func:`query_from` reads them."""
    query = parser.add_argument_group("query")
    add_column_options(query)
    query.add_argument(
        "--band", action="append", default=[], metavar="LEFT:RIGHT:LO:HI",
        help="LO <= left - right <= HI; either may be left empty, durations for temporal columns; "
        "may be repeated",
    )  # fmt: skip
    query.add_argument(
        "--where", metavar="CONDITION",
        help="any other condition on a left row l and a right row r: 'abs(l.x - r.x) <= 3 and "
        "l.city != r.city'; of + - * %%, comparisons, and, or, not, abs, min and max; l['a name'] "
        "for a column whose name is no word",
    )  # fmt: skip
    window = query.add_mutually_exclusive_group(required=True)
    window.add_argument(
        "--within", metavar="DURATION|NUMBER",
        help="how far apart in time rows may be: 180min, 30s, 2h, 1d, 500ms for temporal "
        "columns, a number for others; LO:HI for LO <= left - right <= HI, like --within=-5s:0s",
    )  # fmt: skip
    window.add_argument("--rows", metavar="N", help="only the last N rows of the other table")
    query.add_argument(
        "--advance", metavar="DURATION|NUMBER",
        help="windows in common, one every so far: a pair is wanted if a window, as long as "
        "--within, has both rows; default: rows that are --within apart meet",
    )  # fmt: skip
    query.add_argument(
        "--per-window",
        action="store_true",
        help="with --advance, a pair once for each window that has both rows, with its boundaries",
    )
    query.add_argument(
        "--pairs", default="all", metavar="all|once",
        help="once: of a file that is joined with itself, every two rows once, the earlier one on "
        "the left; default: %(default)s",
    )  # fmt: skip
    query.add_argument(
        "--how", default=JoinType.INNER.value, metavar="TYPE",
        help=f"{', '.join(kind.value for kind in JoinType)}; default: %(default)s",
    )  # fmt: skip
    query.add_argument(
        "--ordering", default="outer", metavar="ORDERING",
        help=f"order of the results: {FORMS}; default: %(default)s",
    )  # fmt: skip
    query.add_argument(
        "--on-failure", default=OnFailure.RAISE.value, metavar="POLICY",
        help="when a core of the accelerator fails: raise, report (go on without it, and say which "
        "tuples are missing) or replay (nothing is missing); default: %(default)s",
    )  # fmt: skip
    add_sorted(query, "both tables are")
    add_suffix(query)


def add_column_options(query: "argparse._ArgumentGroup") -> None:
    """Add ``--time`` and ``--on``, and answer the words that once stood for them."""
    query.add_argument(
        "--time", required=True, metavar="LEFT:RIGHT",
        help="columns that rows arrive by; one name if both are called alike; a colon in a name is "
        r"written \:",
    )  # fmt: skip
    query.add_argument(
        "--on", action="append", default=[], metavar="LEFT:RIGHT",
        help="columns that must be equal; may be repeated",
    )  # fmt: skip


class _OtherWord(argparse.Action):
    """Option that is none: a word of before, or of pandas, for one that the kit has."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option: Any = None
    ) -> None:
        word = self.option_strings[0].removeprefix("--")
        parser.error(RENAMED[word.replace("-", "_")].message(word, "--"))


def add_other_words(parser: argparse.ArgumentParser) -> None:
    """Answer the words of :data:`~host.query.words.RENAMED` that are no options of a parser."""
    for word in RENAMED:
        option = f"--{word.replace('_', '-')}"
        with suppress(argparse.ArgumentError):  # the parser has it
            parser.add_argument(option, nargs="?", action=_OtherWord, help=argparse.SUPPRESS)


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the two tables and the result."""
    add_output(add_input_arguments(parser))


def add_input_arguments(parser: argparse.ArgumentParser) -> "argparse._ArgumentGroup":
    """Add the options that name the two tables; return their group."""
    files = parser.add_argument_group("files", FILES)
    files.add_argument("--left", required=True, metavar="FILE", help=f"the left table: {INPUT}")
    files.add_argument("--right", required=True, metavar="FILE", help="the right table, likewise")
    add_csv_options(files)
    add_memory(files)
    return files


def add_output(files: "argparse._ArgumentGroup") -> None:
    """Add the option that names the file of the result; see :func:`require_output`."""
    files.add_argument(
        "--output", required=True, metavar="FILE",
        help="where the result goes: not one of the inputs; the file appears whole or not at all",
    )  # fmt: skip


def require_output(options: argparse.Namespace, inputs: Mapping[str, str | Path]) -> None:
    """Raise unless the result can be written, and its file is none of the inputs.

    Parameters
    ----------
    options : Namespace
        Options of the command.
    inputs : mapping of str to path-like
        Paths that are read, by the options that name them.
    """
    format_of(options.output)
    require_outputs({"--output": options.output}, inputs)


def add_sorted(query: "argparse._ArgumentGroup", tables: str) -> None:
    """Add the option that declares inputs sorted; ``tables`` begins its help."""
    query.add_argument(
        "--sorted", action="store_true",
        help=f"{tables} sorted by time already; an error if not. The files of a folder are sorted "
        "one by one, and are merged",
    )  # fmt: skip


def add_suffix(query: "argparse._ArgumentGroup") -> None:
    """Add the option for the names of right columns."""
    query.add_argument(
        "--suffix", default="_right", help="for right columns whose name a left one has"
    )


def add_checks(run: "argparse._ArgumentGroup", against: str, explained: str) -> None:
    """Add the options that compare the result with ``against``, and that explain the run."""
    run.add_argument("--verify", action="store_true", help=f"compare with {against}, in memory")
    run.add_argument("--explain", action="store_true", help=explained)


def read_input(options: argparse.Namespace, path: str, status: Status) -> Dataset:
    """Return the only input of its kind, of which nothing but the schema is read yet.

    Raises
    ------
    UsageError
        If it cannot be read, or an option of CSV files does not suit it.
    """
    told = csv_options_of(options, path)
    with status.stage(f"reading {path}"):
        files = Dataset(path, told)
        require_text(told, [files.schema])
    return files


def add_csv_options(files: "argparse._ArgumentGroup") -> None:
    """Add the option that says how CSV files are written; :func:`csv_options_of` reads it."""
    files.add_argument(
        "--csv-option", action="append", default=[], metavar="NAME=VALUE",
        help="how the CSV files are written: delimiter, quote, escape, decimal, encoding, skip "
        "(lines before the header), null (cells that are missing values) or text (a column of "
        "text, such as identifiers with leading zeros); may be repeated. Commas, semicolons, tabs "
        "and bars between cells are found",
    )  # fmt: skip


def csv_options_of(options: argparse.Namespace, *paths: str) -> CsvOptions:
    """Return how the CSV files among inputs are written.

    Raises
    ------
    UsageError
        If an option cannot be read, or no input consists of CSV files.
    """
    found = csv_options(options.csv_option)
    formats = {input_format(file) for path in paths for file in files_of(path)}
    if options.csv_option and ".csv" not in formats:
        raise UsageError("--csv-option is for CSV files, but no input is one; leave it out.")
    return found


def ordered_inputs(
    options: argparse.Namespace, time: tuple[str, str], status: Status
) -> tuple[OrderedInput, OrderedInput]:
    """Return the inputs of a join, with their rows in the order of time.

    Parameters
    ----------
    options : Namespace
        Options of the command.
    time : (str, str)
        The columns of time.
    status : Status
        Told what is read.

    Raises
    ------
    UsageError
        If a file cannot be read, or a column gives no order.
    """
    told, memory = csv_options_of(options, options.left, options.right), memory_of(options)
    found: list[OrderedInput] = []
    for side, path, column in zip(
        ("left", "right"), (options.left, options.right), time, strict=True
    ):
        if found and path == options.left and time[0] == time[1]:
            found.append(found[0])  # a file that is joined with itself
            break
        with status.stage(f"reading {path}"):
            files = Dataset(path, told)
            with naming_cells([(side, files)]):
                found.append(
                    OrderedInput(files, column, side, is_sorted=options.sorted, memory=memory)
                )
    require_text(told, [each.schema for each in found])
    return found[0], found[1]


@contextmanager
def naming_cells(sides: Sequence[tuple[str, Dataset]]) -> Iterator[None]:
    """Say in errors about the type of a text column of a CSV file which cell made it text.

    Parameters
    ----------
    sides : sequence of (str, Dataset)
        What messages call an input, and its files.

    Raises
    ------
    UsageError
        Instead of one that asks for a cast, which a CSV file does not have.
    """
    try:
        yield
    except UsageError as error:
        message = str(error)
        if not isinstance(error, UnsupportedTypeError) and "(string: " not in message:
            raise
        notes = [
            _of_cells(files, name)
            for side, files in sides
            for name in dict.fromkeys(files.schema.names)
            if f"'{side}.{name}'" in message or f"Column {name!r}" in message
            if files.kind == ".csv" and files.schema.names.count(name) == 1
            if pa.types.is_string(files.schema.field(name).type)
        ]
        if not notes:
            raise
        raise UsageError("; ".join([message.rstrip("."), *notes]) + ".") from error


def _of_cells(dataset: Dataset, name: str) -> str:
    """Say which of the cells of a column is text, and what can be done."""
    row, of_path = 0, f"column {name!r} of {str(dataset.path)!r} is text because"
    for batch in dataset.batches([name]):
        for at, cell in enumerate(batch.column(0).to_pylist(), row):
            if cell is not None and not _TYPED.fullmatch(cell):
                return (
                    f"{of_path} of {cell[:_SHOWN]!r} in row {at} (the first is 0): correct it "
                    f"(dates are 2024-01-31, times 2024-01-31 12:30:00), leave it empty, or say by "
                    f"--csv-option null=TEXT that it is a missing value"
                )
        row += batch.num_rows
    return f"{of_path} its cells have no type in common"


def query_from(options: argparse.Namespace) -> Query:
    """Return the query described by parsed ``options``.

    Raises
    ------
    UsageError
        If an option cannot be read.
    """
    rows = None if options.rows is None else positive_integer(options.rows, "--rows")
    return Query(
        time=column_pair(options.time, "--time"),
        on=[column_pair(text, "--on") for text in options.on],
        band=[_band(text) for text in options.band],
        where=options.where,
        within=_within(options.within) if rows is None else None,
        advance=None if options.advance is None else parse_span(options.advance, "--advance"),
        per_window=options.per_window,
        rows=rows,
        pairs=options.pairs,
        how=options.how,
        ordering=parse_ordering(options.ordering),
        sorted=options.sorted,
        suffix=options.suffix,
        on_failure=options.on_failure,
    )


def parse_length(text: str, what: str = "") -> int | Fraction | Duration:
    """Read a number or a duration from text.

    Parameters
    ----------
    text : str
        Text of the number or duration.
    what : str
        Beginning of an error message: what the length is for.

    Raises
    ------
    UsageError
        If the text is neither.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return parse_duration(text, what)
    number = Fraction(text)
    return number.numerator if number.denominator == 1 else number


def parse_span(text: str, option: str) -> int | Duration:
    """Read a length of time: a duration, or a whole number.

    Raises
    ------
    UsageError
        If the text is neither; the error names the option.
    """
    length = parse_length(text, option)
    if not isinstance(length, (int, Duration)):
        raise UsageError(f"{option} takes a whole number, not {text}.")
    return length


def column_pair(text: str, option: str) -> tuple[str, str]:
    r"""Return the columns of ``LEFT:RIGHT``, or of one name that is the same on both sides.

    A colon in a name is written ``\\:``, and a backslash before a colon or backslash ``\\\\``.

    Raises
    ------
    UsageError
        If the text has another form; the error names the option.
    """
    parts = _split(text)
    if len(parts) > 2 or not all(parts):
        raise UsageError(f"{option} takes LEFT:RIGHT, two column names, not {text!r}; {_ESCAPED}.")
    return parts[0], parts[-1]


def _split(text: str) -> list[str]:
    """Return the parts between colons, with the escaped characters in them."""
    parts = [""]
    for escaped, separator, other in re.findall(r"\\([:\\])|(:)|(.)", text, re.DOTALL):
        if separator:
            parts.append("")
        else:
            parts[-1] += escaped or other
    return parts


def _band(text: str) -> Term:
    parts = _split(text)
    if len(parts) != 4 or not all(parts[:2]):
        raise UsageError(
            f"--band takes LEFT:RIGHT:LO:HI, two column names and two bounds, not {text!r}; "
            f"{_ESCAPED}."
        )
    low, high = (
        parse_length(part, f"In --band {text!r}, {name}") if part.strip() else None
        for name, part in zip(("LO", "HI"), parts[2:], strict=True)
    )
    return Term(parts[0], parts[1], low, high)


def _within(text: str) -> Within:
    """Return the width of a window, or its two ends."""
    ends = text.split(":")
    if len(ends) == 2:
        low, high = (_end(end, f"In --within {text!r}, {end!r}") for end in ends)
        return low, high
    width = parse_length(text, "--within")
    return width if isinstance(width, Duration) else floor(width)


def _end(text: str, what: str) -> Span:
    end = parse_length(text, what)
    if not isinstance(end, (int, Duration)):
        raise UsageError(f"{what} is no whole number.")
    return end


def positive_integer(text: str, option: str) -> int:
    """Return a whole number of at least 1; raise a UsageError that names the option otherwise."""
    if not re.fullmatch(r"\d+", text) or int(text) < 1:
        raise UsageError(f"{option} takes a whole number of at least 1, not {text!r}.")
    return int(text)
