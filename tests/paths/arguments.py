# SPDX-License-Identifier: Apache-2.0
"""A case as a caller writes it: options of a command line, arguments of a Spark program."""

from fractions import Fraction

import pyarrow.parquet as pq

from host import CountWindow
from host.query.queries import AsofQuery, Query
from tests.host.tables import asked_terms
from tests.paths.asof_cases import AsofCase
from tests.paths.cases import Case
from tests.paths.overlap_cases import OverlapCase

__all__ = [
    "asof_arguments",
    "asof_options",
    "command_options",
    "overlap_arguments",
    "spark_arguments",
]


def command_options(case: Case, folder, *, device: str) -> list[str]:
    """Write the tables of a case into ``folder``; return the options of a command that joins."""
    query = case.query
    options = _files(case, folder)
    options += ["--time", ":".join(query.time), "--how", query.how.value, "--device", device]
    options += [] if query.where is None else ["--where", query.where.text]
    for term in asked_terms(query):
        if term.is_equality:
            options += ["--on", f"{term.left}:{term.right}"]
        else:
            bounds = ":".join(map(_length, (term.low, term.high)))
            options += ["--band", f"{term.left}:{term.right}:{bounds}"]
    if isinstance(query.window, CountWindow):
        options += ["--rows", str(query.window.size)]
    else:
        options += ["--within", _length(_width(query))]
    if query.advance is not None:
        options += ["--advance", _length(query.advance)]
    return options + ["--sorted"] * query.sorted + ["--per-window"] * query.per_window


def asof_options(case: AsofCase, folder) -> list[str]:
    """Write the tables of a case into ``folder``; return the options of a command that joins."""
    query = case.query
    options = _files(case, folder)
    options += ["--time", ":".join(query.time), "--direction", query.direction.value]
    options += ["--how", query.how.value]
    options += [word for pair in query.on for word in ("--on", ":".join(pair))]
    if query.within is not None:
        options.append(f"--within={query.within}")
    if not query.allow_exact_matches:
        options.append("--no-allow-exact-matches")
    return options + ["--sorted"] * query.sorted


def asof_arguments(query: AsofQuery) -> dict[str, object]:
    """Return what ``asof_join`` takes for a query, besides the inputs."""
    return {
        "time": query.time,
        "on": list(query.on),
        "direction": query.direction.value,
        "within": query.within,
        "allow_exact_matches": query.allow_exact_matches,
        "how": query.how.value,
        "sorted": query.sorted,
        "suffix": query.suffix,
    }


def overlap_arguments(overlap: OverlapCase) -> dict[str, object]:
    """Return what ``overlap_join`` takes for a join of intervals, besides inputs and device."""
    return {
        "left_interval": overlap.intervals[0],
        "right_interval": overlap.intervals[1],
        "on": list(overlap.by),
        "touching": overlap.touching,
        "how": overlap.how,
        # The answer says nothing of the width, but rows that come alone are in its order.
        "longest": _width(overlap.case.query),
    }


def spark_arguments(query: Query) -> dict[str, object]:
    """Return what ``stream_join`` takes for a query, besides the inputs and the device."""
    counted = isinstance(query.window, CountWindow)
    return {
        "on": [(term.left, term.right) for term in asked_terms(query) if term.is_equality],
        "band": [
            (term.left, term.right, term.low, term.high)
            for term in asked_terms(query)
            if not term.is_equality
        ],
        **({} if query.where is None else {"where": query.where.text}),
        "time": query.time,
        "rows": query.window.size if counted else None,
        "within": None if counted else _width(query),
        "advance": query.advance,
        **({"per_window": True} if query.per_window else {}),
        "how": query.how.value,
        "sorted": query.sorted,
        "suffix": query.suffix,
    }


def _files(case, folder):
    """Write the tables of a case; return the options that name them, their names and the output."""
    options = [f"--suffix={case.query.suffix}", "--output", str(folder / "out.parquet")]
    for side, table in (("left", case.left), ("right", case.right)):
        path = folder / f"{side}.parquet"
        pq.write_table(table, path)
        options += [f"--{side}", str(path)]
    return options


def _width(query):
    return query.width


def _length(value):
    if value is None:
        return ""
    return str(float(value)) if isinstance(value, Fraction) else str(value)
