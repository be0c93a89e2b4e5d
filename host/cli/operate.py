# SPDX-License-Identifier: Apache-2.0
"""`python -m host operate`: run an operator that a Python file describes on the rows of files."""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
import time

import pyarrow as pa

from host.cli.arguments import (
    FILES,
    INPUT,
    add_checks,
    add_csv_options,
    add_other_words,
    add_output,
    naming_cells,
    parse_span,
    read_input,
    require_output,
)
from host.cli.command import Status, tell_verdict, tell_written
from host.devices.waiting import Work
from host.errors import UsageError
from host.files.writing import write_table
from host.installation import CommandParser
from host.operators.operate import (
    OperatorQuery,
    load_description,
    operate_tables,
    reference_rows,
)
from host.operators.own import OwnOperator, own_results, require_software

__all__ = [
    "add_parser",
    "main",
]


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``operate`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "operate",
        help="run an operator that a Python file describes on the rows of a file, or of two",
        description="Run a windowed operator of your own: an aggregate with keys, outputs and "
        "conditions, a join, or both. A Python file describes it, or gives its functions; this "
        "command runs it as any Python program, with your rights. Results come in the order of "
        "windows and keys. They are computed in software, or with --device on an accelerator that "
        "is generated for the described operator (sim:, or sim build --operator DESCRIPTION.py), "
        "with the same answer.",
        example="examples/sessions.py --input clicks.csv --output sessions.csv",
    )
    parser.add_argument(
        "description", metavar="DESCRIPTION.py[:NAME]",
        help="the Python file with a WindowedOperator or an OwnOperator, and its name if there are "
        "several; the file is run",
    )  # fmt: skip
    files = parser.add_argument_group("files", FILES)
    files.add_argument(
        "--input", required=True, metavar="FILE",
        help=f"the tuples, with a column for each field of the operator: {INPUT}",
    )  # fmt: skip
    files.add_argument(
        "--right", metavar="FILE", help="the tuples of the right input, if the operator has two"
    )
    add_output(files)
    query = parser.add_argument_group("query")
    query.add_argument(
        "--time", default="timestamp", metavar="COLUMN", help="the column of time, which the "
        "operator calls timestamp; default: %(default)s",
    )  # fmt: skip
    query.add_argument(
        "--unit", metavar="DURATION|NUMBER",
        help="how long a unit of the operator's time is: 1s, 500ms for temporal columns, a number "
        "for others; default: 1 for columns of integers",
    )  # fmt: skip
    run = parser.add_argument_group("run")
    run.add_argument(
        "--device", metavar="URI",
        help="an accelerator for the operator: sim:BUNDLE, or sim: for one that is built for it; "
        "default: the software engine",
    )  # fmt: skip
    add_checks(run, "the reference operator", "say what is computed, and how")
    add_csv_options(files)
    add_other_words(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the operator; return the exit code."""
    unit = None if options.unit is None else parse_span(options.unit, "--unit")
    taken = Work()

    def took(work: Work) -> None:
        taken.cycles += work.cycles

    operator = load_description(options.description)
    if isinstance(operator, OwnOperator):
        require_software(operator, options.device)
        if options.verify:
            raise UsageError(
                "--verify compares with the reference operator, which is what runs an operator of "
                "Python functions: leave it out."
            )
        asked, engine = str(operator), "the reference operator, row by row"
        run = partial(own_results, operator=operator, time=options.time, unit=unit)
    else:
        query = OperatorQuery(operator, options.time, unit)
        asked, engine = str(query), "the software engine"
        run = partial(operate_tables, query=query, device=options.device, work=took)
    inputs = {"--input": options.input} | (
        {} if options.right is None else {"--right": options.right}
    )
    require_output(options, inputs)
    if options.explain:
        print(f"query    {asked}\nruns on  {options.device or engine}")
    count = 0

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in batches:
            count += batch.num_rows
            yield batch

    with Status("operate") as status, ExitStack() as named:
        datasets = []
        for name, path in inputs.items():
            dataset = read_input(options, path, status)
            datasets.append(dataset)
            named.enter_context(naming_cells([(name.strip("-"), dataset)]))
        began = time.monotonic()
        with status.stage("operating"):
            readers = [
                pa.RecordBatchReader.from_batches(one.schema, counted(one.batches()))
                for one in datasets
            ]
            result = run(readers)
        if options.verify:
            with status.stage("comparing with the reference operator"):
                expected = reference_rows([one.table() for one in datasets], query)
            tell_verdict(
                result.equals(expected),
                f"all {result.num_rows} results agree with the reference operator"
                if result.equals(expected)
                else f"{result.num_rows} results differ from the {expected.num_rows} of the "
                f"reference operator",
            )
        rows = write_table(iter(result.to_batches()), result.schema, options.output)
    cycles = f", {taken.cycles} cycles of {options.device}" if taken.cycles else ""
    tell_written(options, f"{count} rows, {rows} results{cycles}", began)
    return 0
