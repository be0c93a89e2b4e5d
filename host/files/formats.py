# SPDX-License-Identifier: Apache-2.0
"""Read and write tables in files; a file's ending decides its format, and writing is atomic."""

from collections.abc import Callable, Iterable
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import json as arrow_json
import pyarrow.parquet as pq

from host.errors import UsageError
from host.files.outputs import atomic_output
from host.files.text import encoding_error

__all__ = ["FORMATS", "format_of", "read_table", "write_table"]

#: Supported endings.
FORMATS = (".parquet", ".csv", ".json")


def format_of(path: str | Path) -> str:
    """Return the ending of ``path``, one of :data:`FORMATS`.

    Raises
    ------
    UsageError
        If the ending is not supported, or Arrow cannot open a file of that name.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"The name of file {str(path)!r} is no UTF-8; rename the file.") from None
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"File {str(path)!r} must end in one of {', '.join(FORMATS)}.")
    return ending


def read_table(path: str | Path) -> pa.Table:
    """Read a table from a file.

    A JSON file holds one object per line, or one array of objects; types are inferred in the same
    way.

    Raises
    ------
    UsageError
        If the file is missing, or its content does not match its ending.
    """
    readers: dict[str, Callable[[Path], pa.Table]] = {
        ".parquet": pq.read_table,
        ".csv": _read_csv,
        ".json": _read_json,
    }
    reader = readers[format_of(path)]
    try:
        # PyArrow takes relative names such as "file:/a" for URIs, but never absolute paths.
        return reader(Path(path).absolute())
    except FileNotFoundError as error:
        raise UsageError(f"File {str(path)!r} cannot be read: No such file.") from error
    except OSError as error:
        # PyArrow also raises OSError for invalid content.
        reason = error.strerror or str(error)
        raise UsageError(f"File {str(path)!r} cannot be read: {reason}.") from error
    except (pa.ArrowException, ValueError) as error:
        cause = None if format_of(path) == ".parquet" else encoding_error(Path(path))
        raise cause or UsageError(
            f"File {str(path)!r} is not valid {format_of(path)[1:]}: {_first_line(error)}."
        ) from error


def write_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: str | Path) -> int:
    """Write batches as they arrive; return the number of rows.

    The file appears under its name when all rows are written. If an error is raised, no new file
    appears, and an existing file stays unchanged.

    Raises
    ------
    UsageError
        If the format cannot hold a column.
    FailureError
        If the file cannot be written.
    """
    writers: dict[str, Callable[[Iterable[pa.RecordBatch], pa.Schema, Path], int]] = {
        ".parquet": _write_parquet,
        ".csv": _write_csv,
        ".json": _write_json,
    }
    writer = writers[format_of(path)]
    with atomic_output(path) as place:
        return writer(batches, schema, place)


def _read_csv(path: Path) -> pa.Table:
    table = csv.read_csv(path)
    # PyArrow reads text that is not UTF-8 as binary values, which a CSV file cannot hold.
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_binary(kind):
            raise ValueError(f"column {name!r} holds bytes that are no text")
    return table


def _read_json(path: Path) -> pa.Table:
    with path.open("rb") as stream:
        first = next((line.strip() for line in stream if line.strip()), b"")
    if not first:
        return pa.table({})
    if not first.startswith(b"["):
        table = arrow_json.read_json(path)
        table.validate(full=True)  # PyArrow does not check that text is UTF-8
        return table
    rows = json.loads(path.read_bytes())
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("the array holds something that is no object")
    if not rows:
        return pa.table({})
    lines = "\n".join(json.dumps(row) for row in rows)
    return arrow_json.read_json(pa.BufferReader(lines.encode()))


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, place: Path) -> int:
    # Each batch becomes a row group, with dictionaries of its own. Those of the numbers of a join
    # took more than half of the time of writing, and made the file no smaller.
    repeated = [field.name for field in schema if not pa.types.is_primitive(field.type)]
    rows = 0
    with pq.ParquetWriter(place, schema, use_dictionary=repeated) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, place: Path) -> int:
    rows = 0
    try:
        with csv.CSVWriter(place, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UsageError(
            f"The result cannot be written as CSV ({_first_line(error)}); write Parquet."
        ) from error
    return rows


def _write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, place: Path) -> int:
    del schema  # every line names its columns
    rows = 0
    with place.open("w", encoding="utf-8") as stream:
        for batch in batches:
            stream.writelines(
                json.dumps(row, default=_json_value, ensure_ascii=False) + "\n"
                for row in batch.to_pylist()
            )
            rows += batch.num_rows
    return rows


def _json_value(value: Any) -> str:
    if isinstance(value, bytes):
        raise UsageError("The result cannot be written as JSON (a column is binary); use Parquet.")
    return str(value)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
