# SPDX-License-Identifier: Apache-2.0
"""`python -m host join`: join two files on a device."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import sys
import time

import pyarrow as pa

from host.default_device import default_device
from host.device import Device
from host.device.turns import WAIT_DEFAULT, open_in_turn, parse_wait
from host.driver import TableJoin
from host.encode import EncodingPlan
from host.errors import FailureError, KeyRangeError
from host.files import format_of, read_table, write_table
from host.outputs import inputs_of, require_outputs
from host.pipeline import Pipeline
from host.query import JoinQuery
from host.query_arguments import add_join_arguments, query_from
from host.streams.device_join import PreparedJoin
from host.verification import compare_pairs, reference_pairs

__all__ = ["add_parser", "explain", "main"]

_WAIT = "--device-wait"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``join`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "join",
        help="join two files over a sliding window",
        description="Join two files over a sliding window, on an accelerator. The result has the "
        "left columns, then the right ones, in the order of arrival of the later row of each pair. "
        "Rows that come alone, by --how, come when they leave the window.",
    )
    add_join_arguments(parser)
    parser.add_argument(
        _WAIT, default=WAIT_DEFAULT, metavar="DURATION",
        help="how long to wait for a device that another process uses; default: %(default)s",
    )  # fmt: skip
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    query = query_from(options)
    wait = parse_wait(options.device_wait, _WAIT)
    format_of(options.output)
    require_outputs({"--output": options.output}, inputs_of(options))
    uri = options.device or default_device(query, build=options.build).uri
    with open_in_turn(
        uri,
        holder="python -m host join",
        seconds=wait.nanoseconds / 1e9,
        remedy=f"wait longer ({_WAIT}), or end that process",
        report=lambda text: print(f"device: {text}", file=sys.stderr),
    ) as device:
        work = _streamed(options, query, device) or _gathered(options, query, device)
        if options.explain:
            print(work.explanation)
        began = time.monotonic()
        rows = write_table(work.batches(), work.schema, options.output)
        seconds = time.monotonic() - began
        left, right = work.rows
        print(
            f"{left} + {right} rows, {rows} results, {seconds:.2f} s, {work.cycles()} cycles on "
            f"{uri}: {options.output}",
            file=sys.stderr,
        )
    return 0


@dataclass(frozen=True)
class _Work:
    """A join of two files that is ready to run."""

    explanation: str
    schema: pa.Schema
    rows: tuple[int, int]
    batches: Callable[[], Iterator[pa.RecordBatch]]
    cycles: Callable[[], int]


def _streamed(options: argparse.Namespace, query: JoinQuery, device: Device) -> _Work | None:
    """Stream sorted Parquet files, whatever their size; None if the files must be read whole."""
    paths = options.left, options.right
    if options.verify or not query.sorted or {format_of(path) for path in paths} != {".parquet"}:
        return None
    left, right = (
        Pipeline.of_parquet(path, sorted_by=[column])
        for path, column in zip(paths, query.order, strict=True)
    )
    prepared: list[PreparedJoin] = []
    joined = left.join(right, query, device, started=prepared.append)
    execution = joined.execution()
    try:
        execution.graph()
    except KeyRangeError:
        return None  # with all values at hand their common divisor may still make them fit
    counts = [side.execution().traits.rows or 0 for side in (left, right)]
    plan = prepared[-1].plan
    text = f"{_heading(query, device, plan)}\n{joined.explain()}"

    def cycles() -> int:
        watch = prepared[-1].accelerator.watch
        return 0 if watch is None else watch.cycles

    return _Work(text, execution.schema, (counts[0], counts[1]), execution.batches, cycles)


def _gathered(options: argparse.Namespace, query: JoinQuery, device: Device) -> _Work:
    """Read both files whole."""
    left, right = read_table(options.left), read_table(options.right)
    join = TableJoin(left, right, query, device, record=options.verify)

    def checked() -> Iterator[pa.RecordBatch]:
        yield from join.batches()
        if options.verify:
            expected = reference_pairs(left, right, query)
            verdict = compare_pairs(join.pairs, expected, ordered=True)
            print(f"verify: {verdict.text}", file=sys.stderr)
            if not verdict.agrees:
                raise FailureError(f"Verification failed: {verdict.text}.")

    return _Work(
        explain(join), join.schema, (left.num_rows, right.num_rows), checked, lambda: join.cycles
    )


def explain(join: TableJoin) -> str:
    """Say how ``join`` is run."""
    streams = [f"streams  {line}" for line in join.describe().splitlines()]
    return "\n".join([_heading(join.query, join.device, join.encoded), *streams])


def _heading(query: JoinQuery, device: Device, plan: EncodingPlan) -> str:
    """Say what is joined, on what, and what becomes of the columns."""
    manifest = device.manifest
    storage = manifest.storage
    lines = [
        f"query    {query}",
        f"device   {device.uri}: {storage.cores} cores x {storage.sub_window} tuples a side",
        f"window   {plan.window}, of {manifest.capacity} tuples at most",
    ]
    for field in plan.fields:
        bounds = f"{field.bounds.low} .. {field.bounds.high}"
        lines.append(f"field    {field.name}: {field.meaning}; difference {bounds}")
    unused = [key.name for key in manifest.keys[len(plan.fields) :]]
    if unused:
        lines.append(f"unused   {', '.join(unused)}")
    return "\n".join(lines)
