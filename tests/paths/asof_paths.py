# SPDX-License-Identifier: Apache-2.0
"""The paths of the host that answer an as-of join."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from host.__main__ import main
from host.operators.asof import AsofJoin, AsofStream, joined_rows
from tests.paths.arguments import asof_options
from tests.paths.asof_cases import AsofCase

__all__ = ["asof_paths"]


def asof_paths(case: AsofCase, devices, folder) -> dict[str, Callable[[], pa.Table]]:
    """Return the ways to the answer, by name; all but ``"pieces in any order"`` keep its order."""
    paths = {
        "the reference join": lambda: _by_reference(case),
        "tables on the host": lambda: AsofJoin(case.left, case.right, case.query).table(),
        "pieces in order": lambda: _by_pieces(case, ordered=True),
        "pieces in any order": lambda: _by_pieces(case, ordered=False),
        "host asof": lambda: _by_command(case, folder),
    }
    for name, device in devices.items():
        paths[f"tables on {name}"] = lambda device=device: AsofJoin(
            case.left, case.right, case.query, device
        ).table()
    return paths


def _by_reference(case):
    """Take the rows that the reference join names."""
    join = AsofJoin(case.left, case.right, case.query)
    rows = joined_rows((case.left, case.right), join.reference_rows(), join.schema)
    return pa.Table.from_batches([rows])


def _by_pieces(case, *, ordered):
    """Join rows that come in pieces, each of two moments of left rows."""
    on = case.query.time
    sides = [
        (table.sort_by(name) if ordered else table, name)
        for table, name in zip((case.left, case.right), on, strict=True)
    ]
    stream = AsofStream(case.left.schema, case.right.schema, case.query, ordered=ordered)
    ends = sorted(set(case.left[on[0]].to_pylist()))[1::2]

    def piece(begin, end):
        for table, name in sides:
            times = table[name].to_pylist()
            held = [
                (begin is None or begin <= time) and (end is None or time < end) for time in times
            ]
            yield table.filter(pa.array(held, pa.bool_()))

    batches = []
    for begin, end in zip([None, *ends], ends, strict=False):
        rows = piece(begin, end)
        batches.append(stream.rows_in_order(*rows) if ordered else stream.rows_until(*rows, end))
    batches.append(stream.last_rows(*piece(ends[-1] if ends else None, None)))
    return pa.Table.from_batches(batches, stream.schema)


def _by_command(case, folder):
    """Run the command in this process, and read what it wrote."""
    assert main(["asof", *asof_options(case, folder)]) == 0
    return pq.read_table(folder / "out.parquet")
