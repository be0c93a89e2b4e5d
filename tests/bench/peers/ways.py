# SPDX-License-Identifier: Apache-2.0
"""Ways of a race, which go to its processes."""

from dataclasses import dataclass
import os
from pathlib import Path
import time

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Busy", "Noted", "Writing"]


@dataclass(frozen=True)
class Noted:
    """A call that adds its name, and the number of its process, to a file."""

    name: str
    log: Path

    def __call__(self):
        with self.log.open("a") as file:
            file.write(f"{self.name} {os.getpid()}\n")


@dataclass(frozen=True)
class Writing(Noted):
    """A call that writes some rows besides."""

    rows: tuple

    def __call__(self, path):
        super().__call__()
        pq.write_table(pa.table({"t": self.rows}), path)


@dataclass(frozen=True)
class Busy:
    """A call that takes some seconds of its process."""

    seconds: float

    def __call__(self, path):
        end = time.process_time() + self.seconds
        while time.process_time() < end:
            pass
        pq.write_table(pa.table({"t": [1]}), path)
