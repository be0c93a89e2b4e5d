# SPDX-License-Identifier: Apache-2.0
"""`python -m host join`: join two files on a device."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
import sys
import time
from typing import Any

import pyarrow as pa

from host.cli.arguments import (
    add_csv_options,
    add_join_arguments,
    csv_options_of,
    naming_cells,
    positive_integer,
    query_from,
)
from host.cli.command import Status, add_wait, open_for_command, wait_of
from host.columns import EncodingPlan, Ranges
from host.devices import Device
from host.devices.bundles import default_device
from host.devices.software import on_device_or_software
from host.errors import FailureError, KeyRangeError, UsageError
from host.files.reading import (
    CsvOptions,
    files_of,
    format_of,
    input_format,
    partition_of,
    require_text,
)
from host.files.writing import inputs_of, require_outputs, write_table
from host.installation import command
from host.pipeline.merging import read_input
from host.pipeline.source import ParquetSource, SortedParquetSource
from host.protocol.cost_model import JoinSize, describe_latency, estimated_cycles, mean_of_last
from host.protocol.segments import hardware_time
from host.query.cores import Controller, parse_controller
from host.query.quantities import positive
from host.query.queries import Query
from host.reference.window import CountWindow
from host.session.join import Join
from host.session.params import Progress
from host.session.records import REPLAY, note_into, read_epochs

__all__ = [
    "add_parser",
    "cost",
    "explain",
    "main",
]

SOFTWARE = "software:"
"""Address of the reference join in software, which holds windows, times and values of any size."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``join`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "join",
        help="join two files over a sliding window",
        description="Join two files over a sliding window, on an accelerator. The result has the "
        "left columns, then the right ones, in the order of arrival of the later row of each pair "
        "unless --ordering says otherwise. Rows that come alone, by --how, come when they leave "
        "the window.",
    )
    add_join_arguments(parser)
    add_csv_options(parser)
    add_wait(parser)
    parser.add_argument(
        "--elastic", nargs="?", const="threshold", metavar="CONTROLLER",
        help="use as many cores of the accelerator as the load needs: by threshold, which is what "
        "--elastic alone means, predictive, or energy, which needs --latency",
    )  # fmt: skip
    parser.add_argument(
        "--latency", metavar="CYCLES",
        help="for --elastic energy: mean clock cycles from the arrival of a row to its results",
    )  # fmt: skip
    parser.add_argument(
        "--elastic-log", metavar="FILE",
        help="where the decisions of an elastic join go, one a line; --elastic replay:FILE makes "
        "the same changes again",
    )  # fmt: skip
    parser.add_argument(
        "--pace", metavar="CYCLES",
        help="let rows arrive by their order column: so many clock cycles for a unit of the left "
        "one; default: as fast as the accelerator takes them",
    )  # fmt: skip
    parser.add_argument(
        "--strict", action="store_true",
        help="an error where the device cannot hold the times, the values or the window; by "
        "default the rows are then joined in software",
    )  # fmt: skip
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    query = replace(query_from(options), elastic=_controller(options))
    wait = wait_of(options)
    format_of(options.output)
    require_outputs({"--output": options.output}, inputs_of(options))
    _running(options)  # what is wrong with them is said before anything is opened
    told = csv_options_of(options, options.left, options.right)
    with Status("join") as status, ExitStack() as held:

        def opened(uri: str) -> Device:
            with status.stage(f"opening {uri}"):
                return held.enter_context(open_for_command(uri, command("host join"), wait))

        # A build reports its own progress, line by line.
        uri = options.device or default_device(query, build=options.build).uri
        first = opened(uri)
        work, used, rows, seconds = on_device_or_software(
            lambda device: _joined(options, query, device, status, told),
            first,
            None if options.strict or uri == SOFTWARE else lambda: opened(SOFTWARE),
            lambda refusal: print(
                f"device: {uri} cannot hold the rows, so all of them are joined in software: "
                f"{refusal}",
                file=sys.stderr,
            ),
        )
        left, right = (side.count for side in work.sides)
        measured = work.join.measured
        cycles = measured.cycles
        counted = f", {cycles} cycles" if cycles else ""  # a board's cycles are not known here
        print(
            f"{left} + {right} rows, {rows} results, {seconds:.2f} s{counted} on "
            f"{uri if used is first else SOFTWARE}, written to {options.output}",
            file=sys.stderr,
        )
        for what, record in (
            ("precision", measured.precision),
            ("elastic", measured.elastic),
            ("failures", measured.failures),
        ):
            if record is not None:
                print(f"{what}: {record}", file=sys.stderr)
        hardware = hardware_time(cycles, used.manifest)
        if hardware is not None:
            print(f"hardware: {hardware}", file=sys.stderr)
    return 0


def _joined(
    options: argparse.Namespace,
    query: Query,
    device: Device,
    status: Status,
    told: CsvOptions,
) -> "tuple[_Work, Device, int, float]":
    """Join the files on a device; return what was done, its device, and its results and seconds."""
    if _is_streamed(options, query):
        # Values that do not fit as they come may fit when all of them are known.
        with suppress(KeyRangeError):
            sides = [
                _streamed(files_of(path), column)
                for path, column in zip((options.left, options.right), query.time, strict=True)
            ]
            return _written(_planned(options, query, device, status, sides), options, status)
    sides = []
    for path, column in zip((options.left, options.right), query.time, strict=True):
        with status.stage(f"reading {path}"):
            table = read_input(path, column, is_sorted=bool(query.sorted), options=told)
            sides.append(_Side(table, table.num_rows, {}))
    require_text(told, [side.rows.schema for side in sides])
    return _written(_planned(options, query, device, status, sides), options, status)


def _written(
    work: "_Work", options: argparse.Namespace, status: Status
) -> "tuple[_Work, Device, int, float]":
    """Run a join and write its results; return what :func:`_joined` returns."""
    join = work.join
    if options.explain:
        left, right = work.sides
        told = [f"input    {side.told}" for side in work.sides if side.told]
        print("\n".join([explain(join, (left.count, right.count)), *told]))
    began = time.monotonic()
    with status.stage("joining", work.passed):
        rows = write_table(_checked(work, options, status), join.schema, options.output)
    return work, join.device, rows, time.monotonic() - began


def _controller(options: argparse.Namespace) -> Controller | None:
    """Return the controller of an elastic join; None without one, or if its epochs are replayed."""
    latency = options.latency
    cycles = None if latency is None else positive_integer(latency, "--latency")
    if options.elastic is None and cycles is not None:
        raise UsageError("--latency is for --elastic energy.")
    return parse_controller(options.elastic, cycles) if _decides(options) else None


def _decides(options: argparse.Namespace) -> bool:
    """Return whether a controller decides while the join runs."""
    return options.elastic is not None and not options.elastic.startswith(REPLAY)


def _running(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of running the join that the command line gives."""
    running: dict[str, Any] = {}
    if options.pace is not None:
        running["pace"] = positive(options.pace, "cycles for a unit of time (--pace)")
    if options.elastic_log is not None:
        if not _decides(options):
            raise UsageError("--elastic-log is for a join with --elastic CONTROLLER.")
        running["note_decision"] = note_into(options.elastic_log)
    if options.elastic is not None and not _decides(options):
        running["epochs"] = read_epochs(options.elastic.removeprefix(REPLAY))
    return running


@dataclass(frozen=True)
class _Side:
    """The rows of an input: a table, or a stream with what is known of it."""

    rows: Any
    count: int
    ranges: Ranges
    told: str = ""


@dataclass(frozen=True)
class _Work:
    """A join of two files that is ready to run."""

    join: Join
    sides: "list[_Side]"
    passed: "_Passed"


class _Passed:
    """Text about the progress of a join on its device.

    Parameters
    ----------
    total : int
        Number of rows of both inputs.
    """

    def __init__(self, total: int = 0) -> None:
        self.total = total
        self._progress = Progress(0, 0, 0)

    def note(self, progress: Progress) -> None:
        """Record the latest progress."""
        self._progress = progress

    def __call__(self) -> str:
        now = self._progress
        cycles = f", {now.cycles:,} cycles" if now.cycles else ""
        return f"{now.tuples:,} of {self.total:,} rows, {now.pairs:,} pairs{cycles}"


def _is_streamed(options: argparse.Namespace, query: Query) -> bool:
    """Return whether files are joined as they are read: sorted Parquet, with nothing to verify."""
    paths = {path: files_of(path) for path in (options.left, options.right)}
    files = [(path, file) for path, of_path in paths.items() for file in of_path]
    return (
        query.sorted
        and not options.verify
        and {input_format(file) for _, file in files} == {".parquet"}
        and not any(partition_of(path, file) for path, file in files)
    )


def _streamed(files: Sequence[Path], column: str) -> _Side:
    """Return the rows of sorted Parquet files as a stream, which the join finds to be in order."""
    source = ParquetSource(files, sorted_by=[column])
    if len(files) > 1:
        source = SortedParquetSource(files, column)
    bound = source.bind()
    rows = pa.RecordBatchReader.from_batches(bound.schema, bound.batches())
    traits = bound.traits
    return _Side(rows, traits.rows or 0, traits.ranges, f"{source}, as a stream: {traits}")


def _planned(
    options: argparse.Namespace,
    query: Query,
    device: Device,
    status: Status,
    sides: list[_Side],
) -> _Work:
    """Prepare the join of both files."""
    passed = _Passed(sum(side.count for side in sides))
    left, right = sides
    named = [("left", options.left, left.rows), ("right", options.right, right.rows)]
    with naming_cells(named), status.stage("planning", lambda: f"{passed.total:,} rows"):
        join = Join(
            left.rows, right.rows, query, device, ranges=(left.ranges, right.ranges),
            record=options.verify, report=passed.note, **_running(options),
        )  # fmt: skip
    return _Work(join, sides, passed)


def _checked(work: _Work, options: argparse.Namespace, status: Status) -> Iterator[pa.RecordBatch]:
    """Yield the results; then compare them with the reference join, if that is asked for."""
    join = work.join
    yield from join.batches()
    if not options.verify:
        return
    from host.operators.verification import compare_pairs, reference_pairs

    with status.stage("comparing with the reference join"):
        left, right = (side.rows for side in work.sides)
        expected = reference_pairs(left, right, join.query)
        ordered = join.query.ordering.period == 1
        verdict = compare_pairs(join.measured.pairs, expected, ordered=ordered)
    print(f"verify: {verdict.text}", file=sys.stderr)
    if not verdict.agrees:
        raise FailureError(f"Verification failed: {verdict.text}.")


def explain(join: Join, rows: tuple[int, int]) -> str:
    """Describe how ``join``, of so many ``rows``, is run."""
    streams = [f"streams  {line}" for line in join.describe().splitlines()]
    return "\n".join([_heading(join.query, join.device, join.plan, rows), *streams])


def _heading(query: Query, device: Device, plan: EncodingPlan, rows: tuple[int, int]) -> str:
    """Describe the query, the device and the encoding of the columns."""
    manifest = device.manifest
    storage = manifest.storage
    cores = f"{storage.cores} core{'s' if storage.cores > 1 else ''}"
    lines = [
        f"query    {query}",
        f"device   {device.uri}: {cores} x {storage.sub_window} tuples a side",
        f"window   {plan.window}, of {manifest.capacity} tuples at most",
        f"order    {query.ordering.meaning}",
    ]
    for field in plan.fields:
        bounds = f"{field.bounds.low} .. {field.bounds.high}"
        lines.append(f"field    {field.name}: {field.meaning}; difference {bounds}")
    unused = [key.name for key in manifest.keys[len(plan.fields) :]]
    if unused:
        lines.append(f"unused   {', '.join(unused)}")
    return "\n".join([*lines, *cost(query, device, rows)])


def cost(query: Query, device: Device, rows: tuple[int, int]) -> list[str]:
    """Say how long it takes by the cost model, if the device has a clock and windows are known.

    How many tuples a time-based window holds depends on the values.
    """
    window = query.window
    if not isinstance(window, CountWindow) or device.uri.startswith("software:"):
        return []
    left, right = (mean_of_last(window.size, count) for count in rows)
    size = JoinSize(rows, (left, right))
    cycles = estimated_cycles(device.manifest, size, query.ordering)
    least = hardware_time(cycles, device.manifest) or f"{cycles:,} cycles"
    return [
        f"cycles   at least {least}, more where many rows match",
        f"latency  {describe_latency(device.manifest, size.windows)}",
    ]
