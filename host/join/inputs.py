# SPDX-License-Identifier: Apache-2.0
"""Read an input of a join from its files."""

from pathlib import Path

import pyarrow as pa

from host.files.reading import CsvOptions, files_of, read_parts
from host.query.column_names import require_column
from host.streams.sorted_sources import merge_sorted

__all__ = ["read_input"]


def read_input(
    path: str | Path, by: str, *, is_sorted: bool, options: CsvOptions | None = None
) -> pa.Table:
    """Return the rows of an input.

    The files of a folder are put one behind the other, or are merged if each of them is sorted.

    Parameters
    ----------
    path : path-like
        A file, a folder of files of one format, or a pattern; see
        :func:`~host.files.reading.files_of`.
    by : str
        The order column.
    is_sorted : bool
        Whether each file is declared to be sorted by this column.
    options : CsvOptions, optional
        What is known of CSV files.

    Raises
    ------
    UsageError
        If a file cannot be read, or files do not belong together.
    DisorderError
        If files are declared sorted, there are several, and one of them is not.
    """
    files = files_of(path)
    tables = read_parts(path, files, options)
    if len(tables) == 1 or not is_sorted:
        return pa.concat_tables(tables)
    schema = tables[0].schema
    require_column(schema.names, by, f"input {str(path)!r}")
    supplies = [table.to_batches for table in tables]
    merged = merge_sorted(supplies, by, [f"file {str(file)!r}" for file in files])
    return pa.Table.from_batches(merged, schema)
