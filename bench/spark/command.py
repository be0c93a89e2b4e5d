# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.spark command``: the command, beside a program that joins the same files.

Both are processes of their own. The program opens a session, and then joins the files twice: what
the first time takes longer than the second, Java spends on loading and compiling its classes.
"""

import argparse
from pathlib import Path
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.spark.race import (
    BenchRow,
    Times,
    add_options,
    processor_seconds,
    ratio,
    require_positive,
    show,
)
from host import FailureError
from host.installation import CommandParser
from spark_offload.__main__ import main as run_command
from spark_offload.api import stream_join
from spark_offload.cluster.session import open_session

__all__ = [
    "MOST",
    "add_parser",
    "main",
]

KEYS, WITHIN = 1_000, 1_000
"""Of the equality; about one result for each left row."""

MOST = 1.5
"""How many times as long as the program's join the command may take, behind Spark's start."""

ORDERS = ("sorted", "unsorted")

OUTPUT = Path("build") / "bench" / "spark-command.json"
"""Where the rows go by default."""


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``command``."""
    parser = subparsers.add_parser(
        "command",
        help="measure the command against the same join in a session",
        description="Join two Parquet files, sorted by time or not, by turns with the command and "
        "by a program that opens a session and joins them twice. Figures are the time of the "
        "command behind Spark's start over that of the program's join, by the clock and by "
        "processor time.",
        example="--rows 200000 --orders sorted --turns 3",
    )
    group = parser.add_argument_group("measurement")
    group.add_argument("--rows", type=int, default=2_000_000, metavar="N", help="of each input")
    group.add_argument(
        "--orders", nargs="+", default=list(ORDERS), choices=ORDERS, help="default: both"
    )
    add_options(group, output=OUTPUT, turns=1)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Measure, print a row per figure, and write them to a file."""
    require_positive(options, "rows", "turns")
    seconds: dict[str, Times] = {}
    rows: list[BenchRow] = []
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for order in options.orders:
        with tempfile.TemporaryDirectory(dir=options.output.parent) as folder:
            _write_inputs(Path(folder), options.rows, mixed=order == "unsorted")
            turns = [_turn(Path(folder), options.master) for _ in range(options.turns)]
        for at, kind in enumerate(("", "processor ")):
            spent = {name: [turn[name][at] for turn in turns] for name in turns[0]}
            seconds |= {f"{order}: {kind}{name}": times for name, times in spent.items()}
            command = zip(spent["command"], spent["start"], strict=True)
            behind_start = [whole - start for whole, start in command]
            for write, goal in (("first", f"<= {MOST}"), ("second", "")):
                figure = f"spark.command.{order}.{kind.strip() or 'time'}_vs_{write}_join"
                rows.append(ratio(figure, spent[f"{write} join"], behind_start, goal))
    show(seconds, rows, options.output)
    return 0


def _write_inputs(folder: Path, rows: int, *, mixed: bool) -> None:
    rng = np.random.default_rng(25)
    for side, name in enumerate(("left", "right")):
        keys = rng.integers(0, KEYS, rows, dtype=np.int32)
        table = pa.table({"t": np.arange(rows) * 2 + side, "k": keys})
        if mixed:
            table = table.take(pa.array(rng.permutation(rows)))
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1 << 15)


def _turn(folder: Path, master: str) -> dict[str, tuple[float, float]]:
    """Return what each part took, in seconds and in those of processors."""
    start, first, second = _run("program", folder, master)
    (command,) = _run("command", folder, master)
    written = pq.read_metadata(folder / "command.parquet").num_rows
    parts = (folder / "program").glob("part-*")
    expected = sum(pq.read_metadata(part).num_rows for part in parts)
    if written != expected:
        raise FailureError(f"The command wrote {written:,} rows, and the program {expected:,}.")
    print(f"command: {command[0]:.2f} s, {written:,} rows", file=sys.stderr)
    return {"start": start, "first join": first, "second join": second, "command": command}


def _run(kind: str, folder: Path, master: str) -> list[tuple[float, float]]:
    """Run a process that prints its processor time at the end of each part; return what each took.

    Raises
    ------
    FailureError
        If it fails.
    """
    words = [sys.executable, "-m", "bench.spark.command", kind, str(folder), master]
    began, spent, parts = time.perf_counter(), 0.0, []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            now, processor = time.perf_counter(), float(line)
            parts.append((now - began, processor - spent))
            began, spent = now, processor
    if process.returncode:
        raise FailureError(f"The {kind} ended with exit code {process.returncode}.")
    return parts


def _tell() -> None:
    print(processor_seconds() or 0.0, flush=True)


def _command(folder: Path, master: str) -> int:
    inputs = ["--left", str(folder / "left.parquet"), "--right", str(folder / "right.parquet")]
    query = ["--time", "t", "--on", "k", "--within", str(WITHIN), "--master", master]
    code = run_command(["join", *inputs, *query, "--output", str(folder / "command.parquet")])
    _tell()
    return code


def _program(folder: Path, master: str) -> int:
    spark = open_session("splitjoin bench-command", master=master)
    _tell()
    for _ in range(2):
        left, right = (spark.read.parquet(str(folder / f"{n}.parquet")) for n in ("left", "right"))
        joined = stream_join(left, right, time="t", on="k", within=WITHIN)
        joined.write.mode("overwrite").parquet(str(folder / "program"))
        _tell()
    return 0


if __name__ == "__main__":
    ways = {"command": _command, "program": _program}
    sys.exit(ways[sys.argv[1]](Path(sys.argv[2]).absolute(), sys.argv[3]))
