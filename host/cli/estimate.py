# SPDX-License-Identifier: Apache-2.0
"""`python -m host estimate`: what accelerators on devices would bring for a join of two files."""

import argparse
from collections.abc import Callable
import math
import time
from typing import TypeVar

import numpy as np
import pyarrow as pa

from host.cli.arguments import (
    add_input_arguments,
    add_other_words,
    add_question,
    ordered_inputs,
    positive_integer,
    query_from,
)
from host.cli.command import Status, aligned
from host.cli.explanation import windows_of_join
from host.columns.encoding import encode
from host.devices import open_device
from host.devices.bundles import SOFTWARE
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import UsageError
from host.installation import CommandParser
from host.pipeline import Pipeline
from host.protocol.cost_model import JoinSize
from host.protocol.input_words import InputCodec
from host.protocol.manifest import Manifest
from host.protocol.modelled import ModelledDevice, modelled_devices
from host.protocol.segments import time_text
from host.query.queries import Query
from host.reference.arrivals import Side
from host.session.join import Join

__all__ = ["add_parser", "main"]

Measured = TypeVar("Measured")

#: Rows of each input that are joined to measure the host, unless others are asked for.
FIRST = 1_000_000
HEADS = ("device", "cycles/row", "device", "link", "whole join", "of software", "pays from")


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``estimate`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "estimate",
        help="estimate what accelerators would bring for a join",
        description="Join the first rows of two files in software, and measure that and what the "
        "host does for a device (words of rows, rows of results). Then print for each of some "
        "devices what the cost model says of its cycles, what its link takes, the slowest of the "
        "three, and from how many rows on that is quicker than software.",
        example="--left trades.csv --right quotes.csv --time time --on symbol\n"
        "--band price:price:-10:10 --within 5s",
    )
    add_input_arguments(parser)
    add_question(parser)
    add_other_words(parser)
    parser.add_argument_group("run").add_argument(
        "--first", metavar="N", default=str(FIRST),
        help="how many rows of each file are joined at the most; default: %(default)s",
    )  # fmt: skip
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Print the estimates; return the exit code."""
    query = query_from(options)
    first = positive_integer(options.first, "--first")
    with Status("estimate") as status:
        inputs = ordered_inputs(options, query.time, status)
        with status.stage("reading the first rows"):
            left, right = (
                Pipeline.of_batches(each.batches, each.schema).limit(first).collect()
                for each in inputs
            )
        windows = windows_of_join(left, right, query)
        size = JoinSize((left.num_rows, right.num_rows), (windows[0][0], windows[1][0]))
        most = max(largest for _, largest in windows)
        with status.stage("joining in software"):
            results, software = _timed(lambda: _joined(left, right, query))
        with status.stage("making words and rows for a device"):
            _, host = _timed(lambda: _host_part(left, right, query, results))
    rows = left.num_rows + right.num_rows
    if not rows:
        raise UsageError(f"{options.left} and {options.right} have no rows to estimate from.")
    print(_about(left, right, size, results, software, host))
    print(aligned([HEADS, *_lines(size, most, results, software, host)]))
    for one in modelled_devices():
        clock, link = f"{one.mhz:.1f} MHz, {one.clock}", f"{one.link.name}, {one.link.known}"
        print(f"{one.name}: {one.preset} at {clock}; {link}")
    return 0


def _timed(work: Callable[[], Measured]) -> tuple[Measured, float]:
    """Return what some work gives, and its least seconds of processor time in two turns."""
    turns = []
    for _ in range(2):
        began = time.process_time()
        found = work()
        turns.append(time.process_time() - began)
    return found, min(turns)


def _joined(left: pa.Table, right: pa.Table, query: Query) -> int:
    with open_device(SOFTWARE) as device:
        return sum(batch.num_rows for batch in Join(left, right, query, device).batches())


def _host_part(left: pa.Table, right: pa.Table, query: Query, results: int) -> None:
    """Do what the host does for a device: encode and pack all rows, and gather those of results."""
    manifest = Manifest.load(SOFTWARE_MANIFEST)
    codec, encoded = InputCodec(manifest), encode(left, right, query, manifest)
    for side, rows in ((Side.R, encoded.left), (Side.S, encoded.right)):
        codec.pack_tuples(side, rows.keys, rows.timestamp)
    for table in (left, right):
        table.take(pa.array(np.linspace(0, max(table.num_rows - 1, 0), results, dtype=np.int64)))


def _about(
    left: pa.Table, right: pa.Table, size: JoinSize, results: int, software: float, host: float
) -> str:
    """Say what was joined, and what was measured."""
    rows = left.num_rows + right.num_rows
    windows = " and ".join(f"{rows_held:,.0f}" for rows_held in size.windows)
    return (
        f"{left.num_rows:,} + {right.num_rows:,} rows, {windows} of them in the windows on "
        f"average, {results:,} results ({results / rows:.3g} a row)\n"
        f"software engine, measured here: {time_text(software)}, {1e6 * software / rows:.3f} us a "
        f"row; the host's part for a device: {time_text(host)}, {1e6 * host / rows:.3f} us a row"
    )


def _lines(
    size: JoinSize, most: int, results: int, software: float, host: float
) -> list[tuple[str, ...]]:
    """Return a line of the table for each device; ``most`` rows of a side are in a window."""
    return [
        (device.name, *_estimated(device, size, results, software, host))
        if most <= device.capacity
        else (device.name, f"holds {device.capacity:,} rows a side, too few")
        for device in modelled_devices()
    ]


def _estimated(
    device: ModelledDevice, size: JoinSize, results: int, software: float, host: float
) -> tuple[str, ...]:
    rows = int(sum(size.rows))
    share = size.rows[0] / rows
    found = device.estimate(rows, size.windows, results, share=share, host=host)
    least = found.pays_from(rows, software)
    return (
        f"{found.cycles:.3g}",
        time_text(found.device),
        time_text(found.link),
        f"{time_text(found.seconds)} ({found.slowest})",
        f"{found.seconds / software:.2f}" if software else "",
        "never" if math.isinf(least) else f"{math.ceil(least):,} rows",
    )
