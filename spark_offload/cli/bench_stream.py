# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload bench-stream``: rows a second of streaming joins, windows sliding."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
import json
from pathlib import Path

from host import UsageError
from spark_offload.cli.stream_benchmark import CASES, WARM_UP, StreamBenchmark, sustained_rate
from spark_offload.session.spark_session import open_session
from spark_offload.streaming.metrics import MicroBatch
from spark_offload.streaming.store import SHUFFLE_PARTITIONS

__all__ = ["add_parser", "main"]

OUTPUT = Path("build") / "bench" / "spark-stream.json"
"""Where the figures go by default."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``bench-stream``."""
    defaults = CASES["small"]
    parser = subparsers.add_parser(
        "bench-stream",
        help="measure streaming joins",
        description="Join two generated streams in Spark's Structured Streaming and print the rows "
        "a second: once with a state about as large as a micro-batch, and once with a state ten "
        "times as large. Rows of both sides of one file each are a micro-batch. With any of "
        "--rows, --batches, --keys and --window, one join of these numbers is measured instead.",
    )
    parser.add_argument(
        "--state", choices=[*CASES, "both"], default="both", help="default: %(default)s"
    )
    for name, text in (
        ("rows", "rows of a micro-batch, both sides together"),
        ("batches", "micro-batches"),
        ("keys", "different keys"),
        ("window", "rows of a side in the window"),
    ):
        parser.add_argument(
            f"--{name}",
            type=int,
            metavar="N",
            help=f"{text}; {getattr(defaults, name)} if another of these four is given",
        )
    parser.add_argument(
        "--warm-up",
        type=int,
        metavar="N",
        help="first micro-batches that are not measured; default: until the window is full, and "
        f"two more, but at least {WARM_UP}",
    )
    parser.add_argument(
        "--device", default="software:", help="device to join on; default: %(default)s"
    )
    parser.add_argument(
        "--groups",
        type=int,
        metavar="N",
        help="groups of rows, and partitions of the state; default: one for each core of Spark",
    )
    parser.add_argument("--master", default="local[*]", help="Spark master; default: %(default)s")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code."""
    for name in ("rows", "batches", "keys", "window", "groups"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} must be at least 1, not {value}.")
    cases = _cases(options)
    skips = {
        name: case.warm_up if options.warm_up is None else options.warm_up
        for name, case in cases.items()
    }
    for name, case in cases.items():
        if not 0 <= skips[name] < case.batches:
            raise UsageError(
                f"--warm-up must be at least 0 and less than the {case.batches} micro-batches of "
                f"--batches, not {skips[name]}."
            )
    spark = open_session("splitjoin bench-stream", master=options.master)
    groups = options.groups or spark.sparkContext.defaultParallelism
    spark.conf.set(SHUFFLE_PARTITIONS, str(groups))
    figures = []
    for name, case in cases.items():
        batches = case.run(spark, device=options.device, groups=groups)
        kept = _show(batches)
        rate = sustained_rate(batches, skip=skips[name])
        figures.append(
            {
                "name": f"spark.stream.rows_per_s_{name}_state",
                "value": rate,
                "unit": "rows/s",
                "micro_batch_rows": case.rows,
                "state_rows": kept,
            }
        )
        print(
            f"\n{rate:,.0f} rows/s, the first {skips[name]} micro-batches left out, with micro-"
            f"batches of {case.rows:,} rows and up to {kept:,} rows in the state\n"
        )
    for figure in figures:
        print(f"{figure['name']:36} {figure['value']:12,.0f}  {figure['unit']}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _cases(options: argparse.Namespace) -> dict[str, StreamBenchmark]:
    """Return what is to be measured, by name."""
    given = {
        name: getattr(options, name)
        for name in ("rows", "batches", "keys", "window")
        if getattr(options, name) is not None
    }
    if given:
        return {"chosen": replace(CASES["small"], **given)}
    return CASES if options.state == "both" else {options.state: CASES[options.state]}


def _show(batches: Sequence[MicroBatch]) -> int:
    """Print a row for each micro-batch; return the greatest size of the state."""
    print("\nmicro-batch       rows    results  late   in state  seconds  device s")
    kept = most = 0
    for batch in batches:
        kept += batch.stored - batch.expired
        most = max(most, kept)
        print(
            f"{batch.batch:11} {batch.rows:10,} {batch.results:10,} {batch.late_rows:5,} "
            f"{kept:10,} {batch.trigger_seconds:8.2f} {batch.device_seconds:9.2f}"
        )
    return most
