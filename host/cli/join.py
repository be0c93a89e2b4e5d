# SPDX-License-Identifier: Apache-2.0
"""`python -m host join`: join two files on a device."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
import sys
import time
from typing import Any

import pyarrow as pa

from host.cli.arguments import (
    add_join_arguments,
    naming_cells,
    ordered_inputs,
    positive_integer,
    query_from,
    require_output,
)
from host.cli.command import (
    Status,
    add_wait,
    memory_of,
    memory_taken,
    open_for_command,
    tell_verdict,
    wait_of,
)
from host.columns.kinds import Ranges
from host.devices import Device
from host.devices.bundles import SOFTWARE, ChosenDevice, choose_device
from host.devices.software import on_device_or_software
from host.errors import UsageError
from host.files.writing import inputs_of, write_table
from host.installation import CommandParser, command
from host.pipeline.inputs import OrderedInput
from host.protocol.segments import hardware_time
from host.query.cores import Controller, parse_controller
from host.query.quantities import positive
from host.query.queries import Query
from host.query.tables import Input
from host.session.join import Join
from host.session.params import Progress
from host.session.records import REPLAY, note_into, read_epochs

__all__ = [
    "add_parser",
    "main",
]


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``join`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "join",
        help="join two files over a sliding window",
        description="Join two files over a sliding window, on an accelerator. The result has the "
        "left columns, then the right ones, in the order of arrival of the later row of each pair "
        "unless --ordering says otherwise. One-sided rows, by --how, come when they leave the "
        "window.",
        example="--left trades.csv --right quotes.csv --time time --on symbol\n"
        "--band price:price:-10:10 --within 5s --output pairs.parquet",
    )
    add_join_arguments(parser)
    device = parser.add_argument_group("device")
    add_wait(device)
    device.add_argument(
        "--elastic", nargs="?", const="threshold", metavar="CONTROLLER",
        help="use as many cores of the accelerator as the load needs: by threshold, which is what "
        "--elastic alone means, predictive, or energy, which needs --latency",
    )  # fmt: skip
    device.add_argument(
        "--latency", metavar="CYCLES",
        help="for --elastic energy: mean clock cycles from the arrival of a row to its results",
    )  # fmt: skip
    device.add_argument(
        "--elastic-log", metavar="FILE",
        help="where the decisions of an elastic join go, one a line; --elastic replay:FILE makes "
        "the same changes again",
    )  # fmt: skip
    device.add_argument(
        "--pace", metavar="CYCLES",
        help="let rows arrive by their order column: so many clock cycles for a unit of the left "
        "one; default: as fast as the accelerator takes them",
    )  # fmt: skip
    device.add_argument(
        "--strict", action="store_true",
        help="an error where the device cannot hold the times, the values or the window; by "
        "default the rows are then joined in software",
    )  # fmt: skip
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    query = replace(query_from(options), elastic=_controller(options))
    wait = wait_of(options)
    memory_of(options)
    require_output(options, inputs_of(options))
    _running(options)  # what is wrong with them is said before anything is opened
    with Status("join") as status, ExitStack() as held:

        def opened(uri: str) -> Device:
            with status.stage(f"opening {uri}"):
                return held.enter_context(open_for_command(uri, command("host join"), wait))

        # A build reports its own progress, line by line.
        chosen = choose_device(options.device, query, needs=_need_of(options), build=options.build)
        uri = chosen.uri
        first = opened(uri)
        inputs = ordered_inputs(options, query.time, status)
        work = _Work(options, status, inputs, chosen)
        join, rows, seconds = on_device_or_software(
            lambda device: work.done(query if device is first else query.in_software, device),
            first,
            None if options.strict or uri == SOFTWARE else lambda: opened(SOFTWARE),
            lambda refusal: print(
                f"device: {uri} cannot hold the rows, so all of them are joined in software: "
                f"{refusal}",
                file=sys.stderr,
            ),
        )
        left, right = (each.rows for each in inputs)
        where = uri if join.device is first else SOFTWARE
        measured = join.measured
        cycles = measured.cycles
        counted = f", {cycles} cycles" if cycles else ""  # a board's cycles are not known here
        print(
            f"{left} + {right} rows, {rows} results, {seconds:.2f} s{counted} on "
            f"{where}, written to {options.output}{memory_taken()}",
            file=sys.stderr,
        )
        for what, record in (
            ("precision", measured.precision),
            ("elastic", measured.elastic),
            ("failures", measured.failures),
        ):
            if record is not None:
                print(f"{what}: {record}", file=sys.stderr)
        hardware = hardware_time(cycles, join.device.manifest)
        if hardware is not None:
            print(f"hardware: {hardware}", file=sys.stderr)
    return 0


def _need_of(options: argparse.Namespace) -> str | None:
    """Return the option that asks for what only an accelerator has."""
    if options.pace is not None:
        return "--pace"
    return None if options.elastic is None else "--elastic"


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


class _Work:
    """The join of both files, as the command line says.

    Parameters
    ----------
    options : Namespace
        Options of the command.
    status : Status
        Told what is done.
    inputs : sequence of OrderedInput
        The left and the right rows; one object if a file is joined with itself.
    chosen : ChosenDevice
        The device that is tried first, and why.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        status: Status,
        inputs: Sequence[OrderedInput],
        chosen: ChosenDevice,
    ) -> None:
        self._options, self._status = options, status
        self._inputs, self._chosen = inputs, chosen
        self._progress = Progress(0, 0, 0)

    def done(self, query: Query, device: Device) -> tuple[Join, int, float]:
        """Join the files on a device; return the join, and its results and seconds."""
        options = self._options
        join, rows = self._planned(query, device)
        if options.explain:
            from host.cli.explanation import explain, size_of_join

            told = [f"input    {each}" for each in self._inputs]
            told.append(f"chosen   {self._chosen.uri}: {self._chosen.reason}")
            left, right = (each.dataset.table([each.by]) for each in self._inputs)
            print("\n".join([explain(join, size_of_join(left, right, query)), *told]))
        began = time.monotonic()
        with self._status.stage("joining", self._passed):
            count = write_table(self._checked(join, rows), join.schema, options.output)
        return join, count, time.monotonic() - began

    @property
    def _rows(self) -> int:
        return sum(each.rows for each in self._inputs)

    def _note(self, progress: Progress) -> None:
        self._progress = progress

    def _passed(self) -> str:
        """Say how far the join has come."""
        now = self._progress
        cycles = f", {now.cycles:,} cycles" if now.cycles else ""
        return f"{now.tuples:,} of {self._rows:,} rows, {now.pairs:,} pairs{cycles}"

    def _planned(self, query: Query, device: Device) -> tuple[Join, list[Input]]:
        """Prepare the join, whose rows come in the order of time; return it with the rows."""
        options, status, inputs = self._options, self._status, self._inputs
        rows: list[Input] = []
        for each in inputs[:1] if inputs[0] is inputs[1] else inputs:
            reader = each.reader()
            rows.append(reader.read_all() if options.verify else reader)
        known: list[Ranges] = [{}, {}]
        if not device.is_software_engine and not options.verify:
            # Key fields have few bits. What values they must hold is found by reading the columns.
            for side, each in enumerate(inputs):
                columns = [each.by, *((term.left, term.right)[side] for term in query.terms)]
                with status.stage(f"looking at the values of {each.dataset.path}"):
                    known[side] = each.ranges(list(dict.fromkeys(columns)))
        sides = [(side, each.dataset) for side, each in zip(("left", "right"), inputs, strict=True)]
        with naming_cells(sides), status.stage("planning", lambda: f"{self._rows:,} rows"):
            join = Join(
                rows[0], rows[-1], replace(query, sorted=True), device,
                ranges=(known[0], known[1]), record=options.verify, report=self._note,
                **_running(options),
            )  # fmt: skip
        return join, rows

    def _checked(self, join: Join, rows: Sequence[Input]) -> Iterator[pa.RecordBatch]:
        """Yield the results; then compare them with the reference join, if that is asked for."""
        yield from join.batches()
        if not self._options.verify:
            return
        from host.operators.verification import compare_pairs, reference_pairs

        with self._status.stage("comparing with the reference join"):
            expected = reference_pairs(rows[0], rows[-1], join.query)
            ordered = join.params.is_exact
            verdict = compare_pairs(join.measured.pairs, expected, ordered=ordered)
        tell_verdict(*verdict)
