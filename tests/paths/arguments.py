# SPDX-License-Identifier: Apache-2.0
"""A case as a caller writes it: options of a command line, arguments of a Spark program."""

from fractions import Fraction

import pyarrow.parquet as pq

from host import CountWindow
from host.query.join_query import JoinQuery
from tests.paths.cases import Case

__all__ = ["command_options", "spark_arguments"]


def command_options(case: Case, folder, *, device: str) -> list[str]:
    """Write the tables of a case into ``folder``; return the options of a command that joins."""
    query = case.query
    options = ["--order", ":".join(query.order), "--how", query.how.value, "--device", device]
    for side, table in (("left", case.left), ("right", case.right)):
        pq.write_table(table, folder / f"{side}.parquet")
        options += [f"--{side}", str(folder / f"{side}.parquet")]
    for term in query.terms:
        if term.is_equality:
            options += ["--equal", f"{term.left}:{term.right}"]
        else:
            bounds = ":".join(map(_length, (term.low, term.high)))
            options += ["--band", f"{term.left}:{term.right}:{bounds}"]
    if isinstance(query.window, CountWindow):
        options += ["--rows", str(query.window.size)]
    else:
        options += ["--within", _length(_width(query))]
    options += ["--sorted"] * query.sorted
    return [*options, f"--suffix={query.suffix}", "--output", str(folder / "out.parquet")]


def spark_arguments(query: JoinQuery) -> dict[str, object]:
    """Return what ``stream_join`` takes for a query, besides the inputs and the device."""
    counted = isinstance(query.window, CountWindow)
    return {
        "on": [(term.left, term.right) for term in query.terms if term.is_equality],
        "band": [
            (term.left, term.right, term.low, term.high)
            for term in query.terms
            if not term.is_equality
        ],
        "order": query.order,
        "rows": query.window.size if counted else None,
        "within": None if counted else _width(query),
        "how": query.how.value,
        "sorted": query.sorted,
        "suffix": query.suffix,
    }


def _width(query):
    return getattr(query.window, "lifespan", query.window)


def _length(value):
    if value is None:
        return ""
    return str(float(value)) if isinstance(value, Fraction) else str(value)
