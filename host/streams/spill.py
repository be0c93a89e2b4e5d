# SPDX-License-Identifier: Apache-2.0
"""Runs of rows in temporary files."""

from collections.abc import Iterator
from pathlib import Path
import tempfile

import pyarrow as pa

from host.errors import FailureError

__all__ = ["SpillFolder"]


class SpillFolder:
    """A temporary folder of runs, which :meth:`close` removes in any case.

    Parameters
    ----------
    parent : str or Path, optional
        Folder in which it is made; by default the system's folder for temporary files.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="splitjoin-spill-", dir=parent)
        except OSError as error:
            raise FailureError(
                f"Cannot make a folder for rows that exceed the memory: {error}."
            ) from error
        self._runs: list[Path] = []
        self._readers: set[pa.NativeFile] = set()
        #: Bytes written so far.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._runs)

    def write(self, run: pa.Table, rows: int) -> None:
        """Add a run, in batches of at most ``rows`` rows."""
        path = Path(self._folder.name) / f"{len(self._runs)}.arrow"
        try:
            with (
                pa.OSFile(str(path), "wb") as file,
                pa.ipc.new_file(file, run.schema) as writer,
            ):
                writer.write_table(run, max_chunksize=rows)
        except OSError as error:
            raise FailureError(
                f"Rows that exceed the memory need {run.nbytes} bytes in {path.parent}, and "
                f"writing there failed: {error}. Name another folder for temporary files (TMPDIR), "
                f"or allow more memory."
            ) from error
        self.bytes += path.stat().st_size
        self._runs.append(path)

    def read(self, run: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a run; only one at a time is in memory."""
        file = pa.OSFile(str(self._runs[run]), "rb")
        self._readers.add(file)
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
        self._readers.discard(file)
        file.close()

    def close(self) -> None:
        """Remove all files; calling it again has no effect."""
        for file in self._readers:
            file.close()
        self._readers.clear()
        self._folder.cleanup()
