# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m bench files``: time and memory of joins of files, by their size."""

import os
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["WAYS", "add_command", "measure", "write"]

FOLDER = Path("build") / "bench" / "files"
#: Rows that are generated, and written as a row group, at a time.
PIECE = 1 << 20
#: Different keys, and the largest difference in time of a pair.
KEYS, WITHIN = 1 << 16, 20_000
#: Options of the commands, by their names; all of them read the same files.
WAYS = {
    "join": ["--time", "t:rt", "--on", "k:rk", "--within", str(WITHIN)],
    "asof": ["--time", "t:rt", "--on", "k:rk", "--within", str(WITHIN), "--how", "inner"],
    "aggregate": [
        "--time", "t", "--on", "k", "--window", "1000000", "--aggregate", "n=count",
        "--aggregate", "sum=sum:v",
    ],
}  # fmt: skip


def write(folder, rows, *, is_sorted):
    """Write two files of three int64 columns: a time, a key, a value; return their paths.

    Rows of either side come at every time, in the order of time or in any order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(26)
    paths = []
    for name, prefix in (("left", ""), ("right", "r")):
        paths.append(folder / f"{name}.parquet")
        schema = pa.schema([(f"{prefix}{column}", pa.int64()) for column in "tkv"])
        with pq.ParquetWriter(paths[-1], schema, use_dictionary=False) as writer:
            for begin in range(0, rows, PIECE):
                count = min(PIECE, rows - begin)
                times = np.arange(begin, begin + count)
                if not is_sorted:
                    times = generator.integers(0, rows, count)
                keys, values = (generator.integers(0, top, count) for top in (KEYS, 1 << 40))
                writer.write_table(pa.table([times, keys, values], schema=schema))
    return paths


def measure(way, paths, output, *more):
    """Run a command in a process of its own; return its seconds of processor time, and peak bytes.

    Raises
    ------
    RuntimeError
        If the command fails.
    """
    files = ["--left", paths[0], "--right", paths[1]]
    if way == "aggregate":
        files = ["--input", paths[0]]
    words = [sys.executable, "-m", "host", way, *files, *WAYS[way], *more, "--output", output]
    with TemporaryFile("w+") as said:
        child = subprocess.Popen(list(map(str, words)), stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            said.seek(0)
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"host {way} ended with code {code}: {said.read().strip()}")
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit


def run(options, report):
    """Measure a command on files of several sizes, and print a row for each."""
    first = {}
    for rows in options.rows:
        folder = FOLDER / f"{'any' if options.unsorted else 'sorted'}-{rows}"
        report(f"writing 2 x {rows:,} rows")
        paths = write(folder, rows, is_sorted=not options.unsorted)
        for way in options.ways:
            output = folder / "out.parquet"
            report(f"host {way}")
            seconds, peak = measure(way, paths, output, "--memory", options.memory)
            count = rows * len(paths) if way != "aggregate" else rows
            each = seconds / count * 1e6
            ratio = each / first.setdefault(way, each)
            print(
                f"{way}: {count:,} rows, {pq.read_metadata(output).num_rows:,} results, "
                f"{seconds:.1f} s of processor time, {each:.3f} us a row ({ratio:.2f} times the "
                f"first size), {peak / 1e6:,.0f} MB at most",
                flush=True,
            )
            output.unlink()
        for path in paths:
            path.unlink()
    return 0


def add_command(commands, report):
    """Add ``files`` to the commands of ``python -m bench``; ``report`` receives its progress."""
    command = commands.add_parser(
        "files", help="measure joins of files by their size: processor time and memory",
        description="Write two Parquet files of three int64 columns, run commands of the host on "
        "them with the software engine, and print processor time and peak memory of each. 2 x "
        "100,000,000 rows take 5 GB of disk.",
        example="--rows 2000000 20000000 --unsorted --memory 1GB",
    )  # fmt: skip
    command.add_argument(
        "--rows", type=int, nargs="+", default=[2_000_000, 20_000_000], metavar="N",
        help="rows of each file; default: 2,000,000 and 20,000,000",
    )  # fmt: skip
    command.add_argument(
        "--ways", nargs="+", choices=list(WAYS), default=["join"], metavar="COMMAND",
        help=f"{', '.join(WAYS)}; default: join",
    )  # fmt: skip
    command.add_argument(
        "--unsorted", action="store_true", help="rows in any order; default: in that of time"
    )
    command.add_argument(
        "--memory", default="1GB", metavar="SIZE", help="of the commands; default: %(default)s"
    )
    command.set_defaults(run=lambda options: run(options, report))
