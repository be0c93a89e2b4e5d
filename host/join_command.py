# SPDX-License-Identifier: Apache-2.0
"""`python -m host join`: join two files on a device."""

import argparse
from collections.abc import Iterator
import sys
import time

import pyarrow as pa

from host.bundles import default_bundle
from host.device import open_device
from host.driver import TableJoin
from host.engine_choice import suitable_engine
from host.errors import FailureError
from host.files import read_table, require_writable, write_table
from host.query_arguments import add_join_arguments, query_from
from host.verification import compare_pairs, reference_pairs

__all__ = ["add_parser", "explain", "main"]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand ``join`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "join",
        help="join two files over a sliding window",
        description="Join two files over a sliding window, on an accelerator. The result has the "
        "left columns, then the right ones, in the order of arrival of the later row of each pair.",
    )
    add_join_arguments(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the join; return the exit code."""
    query = query_from(options)
    require_writable(options.output)
    left, right = read_table(options.left), read_table(options.right)
    uri = options.device or f"sim:{default_bundle(suitable_engine(query).engine)}"
    with open_device(uri) as device:
        join = TableJoin(left, right, query, device, record=options.verify)
        if options.explain:
            print(explain(join))
        began = time.monotonic()

        def checked() -> Iterator[pa.RecordBatch]:
            yield from join.batches()
            if options.verify:
                expected = reference_pairs(left, right, query)
                verdict = compare_pairs(join.pairs, expected, ordered=True)
                print(f"verify: {verdict.text}", file=sys.stderr)
                if not verdict.agrees:
                    raise FailureError(f"Verification failed: {verdict.text}.")

        rows = write_table(checked(), join.schema, options.output)
        seconds = time.monotonic() - began
        print(
            f"{left.num_rows} + {right.num_rows} rows, {rows} results, {seconds:.2f} s, "
            f"{join.cycles} cycles on {uri}: {options.output}",
            file=sys.stderr,
        )
    return 0


def explain(join: TableJoin) -> str:
    """Say how ``join`` is run."""
    manifest, encoded = join.device.manifest, join.encoded
    storage = manifest.storage
    lines = [
        f"query    {join.query}",
        f"device   {join.device.uri}: {storage.cores} cores x {storage.sub_window} tuples a side",
        f"window   {encoded.window}, of {manifest.capacity} tuples at most",
    ]
    for field in encoded.fields:
        bounds = f"{field.bounds.low} .. {field.bounds.high}"
        lines.append(f"field    {field.name}: {field.meaning}; difference {bounds}")
    unused = [key.name for key in manifest.keys[len(encoded.fields) :]]
    if unused:
        lines.append(f"unused   {', '.join(unused)}")
    lines += [f"streams  {line}" for line in join.describe().splitlines()]
    return "\n".join(lines)
