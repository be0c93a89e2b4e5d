# SPDX-License-Identifier: Apache-2.0
"""What the answer to a case is: every pair looked at with Python's own arithmetic."""

from collections import Counter

from host.query.queries import Query
from tests.host.tables import naive_results, shared_windows
from tests.paths.cases import Case

__all__ = ["compare", "difference", "expected_names", "expected_rows", "row_of"]


def row_of(values):
    """Return a row as text, in which NaN is NaN and -0.0 is not 0.0."""
    return repr(tuple(bytes(v) if isinstance(v, bytearray) else v for v in values))


def expected_rows(case: Case) -> list[str]:
    """Return the rows of the answer, in strict order."""
    sides = [
        [tuple(row.values()) for row in table.to_pylist()] for table in (case.left, case.right)
    ]
    alone = [(None,) * table.num_columns for table in (case.left, case.right)]
    rows = []
    for numbers in naive_results(case.left, case.right, case.query):
        left, right = (
            none if number is None else own[number]
            for number, own, none in zip(numbers, sides, alone, strict=True)
        )
        row = (*left, *right) if case.query.how.has_pairs else left
        windows = [()]
        if case.query.per_window:
            times = (
                table.column(name)[number].as_py()
                for table, name, number in zip(
                    (case.left, case.right), case.query.time, numbers, strict=True
                )
            )
            windows = shared_windows(case.query, *times)
        rows += [row_of((*row, *window)) for window in windows]
    return rows


def expected_names(case: Case) -> list[str]:
    """Return the names of the answer's columns."""
    names, taken = list(case.left.column_names), {n.lower() for n in case.left.column_names}
    if case.query.how.has_pairs:
        names += [n + case.query.suffix * (n.lower() in taken) for n in case.right.column_names]
    per_window = isinstance(case.query, Query) and case.query.per_window
    return names + ["window_start", "window_end"] * per_window


def compare(case: Case, names: list[str], rows: list[str], *, ordered: bool) -> str:
    """Return what is wrong with an answer; nothing if it is right."""
    wanted = expected_names(case), expected_rows(case)
    return difference(f"{case} ({case.query})", (names, rows), wanted, ordered=ordered)


def difference(
    what: str,
    answer: tuple[list[str], list[str]],
    wanted: tuple[list[str], list[str]],
    *,
    ordered: bool,
) -> str:
    """Return how an answer, its names and its rows, differs from the wanted one; nothing if not."""
    (names, rows), (wanted_names, expected) = answer, wanted
    if names != wanted_names:
        return f"{what}: columns {names}, not {wanted_names}"
    if Counter(rows) != Counter(expected):
        missing, extra = Counter(expected) - Counter(rows), Counter(rows) - Counter(expected)
        return f"{what}: missing {dict(missing)}, in excess {dict(extra)}"
    if ordered and rows != expected:
        return f"{what}: in the order {rows}, not {expected}"
    return ""
