# SPDX-License-Identifier: Apache-2.0
"""Read an input of a join from a file, or from a folder of files."""

from pathlib import Path

import pyarrow as pa

from host.errors import UsageError
from host.files.folders import files_of
from host.files.formats import read_table
from host.query.column_names import require_column
from host.streams.sorted_sources import merge_sorted

__all__ = ["read_input"]


def read_input(path: str | Path, by: str, *, is_sorted: bool) -> pa.Table:
    """Return the rows of an input.

    The files of a folder are put one behind the other, or are merged if each of them is sorted.

    Parameters
    ----------
    path : path-like
        A file, or a folder of files of one format.
    by : str
        The order column.
    is_sorted : bool
        Whether each file is declared to be sorted by this column.

    Raises
    ------
    UsageError
        If a file cannot be read, or files differ in their columns.
    DisorderError
        If files are declared sorted, there are several, and one of them is not.
    """
    files = files_of(path)
    tables = [read_table(file) for file in files]
    first = tables[0].schema
    for file, table in zip(files, tables, strict=True):
        if not table.schema.equals(first):
            raise UsageError(
                f"File {str(file)!r} has the columns {table.schema.to_string()!r}, but "
                f"{str(files[0])!r} of the same folder has {first.to_string()!r}."
            )
    if len(tables) == 1:
        return tables[0]
    if not is_sorted:
        return pa.concat_tables(tables)
    require_column(first.names, by, f"folder {str(path)!r}")
    supplies = [table.replace_schema_metadata().to_batches for table in tables]
    names = [f"file {str(file)!r}" for file in files]
    merged = merge_sorted(supplies, by, names)
    return pa.Table.from_batches(merged, first.remove_metadata())
