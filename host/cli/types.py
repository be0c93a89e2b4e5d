# SPDX-License-Identifier: Apache-2.0
"""`python -m host types`: list the uses of each column type."""

import argparse

import pyarrow as pa

from host.columns.encoding import plan_streams
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import UsageError
from host.installation import CommandParser
from host.protocol.manifest import Manifest
from host.query.quantities import Duration
from host.query.queries import Query

__all__ = [
    "TYPES",
    "add_parser",
    "main",
    "supported",
    "table",
]

#: A representative of each Arrow type, and its name in Spark.
TYPES: dict[str, tuple[pa.DataType, str]] = {
    "int8 to int64": (pa.int32(), "byte, short, int, long"),
    "uint8 to uint64": (pa.uint32(), "-"),
    "bool": (pa.bool_(), "boolean"),
    "date32, date64": (pa.date32(), "date"),
    "timestamp": (pa.timestamp("us"), "timestamp_ntz"),
    "timestamp with zone": (pa.timestamp("us", "UTC"), "timestamp"),
    "time32, time64": (pa.time64("us"), "time"),
    "duration": (pa.duration("us"), "interval day to second"),
    "decimal": (pa.decimal128(18, 2), "decimal"),
    "float, double": (pa.float64(), "float, double"),
    "string": (pa.string(), "string, char, varchar"),
    "binary": (pa.binary(), "binary"),
    "uuid": (pa.uuid(), "-"),
    "list, struct, map": (pa.list_(pa.int32()), "array, struct, map"),
}

#: Uses of a type, as a term or as an order column of a query.
USES = ("equality", "difference", "order")


def supported(dtype: pa.DataType, use: str) -> bool:
    """Return whether the planner accepts columns of a type for a use."""
    schema = pa.schema([("t", pa.int64()), ("k", dtype)])
    if use == "difference":
        low = Duration(0) if pa.types.is_temporal(dtype) else 0
        query = Query(time="t", band={"k": (low, None)}, rows=1)
    else:
        query = Query(time="k", rows=1) if use == "order" else Query(time="t", on="k", rows=1)
    try:
        plan_streams(schema, schema, query, Manifest.load(SOFTWARE_MANIFEST))
    except UsageError:
        return False
    return True


def table() -> str:
    """Return the table in Markdown."""
    lines = [
        "| Arrow type | in Spark | carried | equal | difference within bounds | order of arrival |",
        "|---|---|---|---|---|---|",
    ]
    for name, (dtype, in_spark) in TYPES.items():
        marks = ("yes" if supported(dtype, use) else "-" for use in USES)
        lines.append(f"| {name} | {in_spark} | yes | {' | '.join(marks)} |")
    return "\n".join(lines)


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``types`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "types",
        help="list the column types and what they can be used for",
        description="List the types of columns, and whether they can be carried, compared for "
        "equality, compared by difference, or give the order of arrival.",
        example="",
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Print the table; return the exit code."""
    del options  # there are none
    print(table())
    return 0
