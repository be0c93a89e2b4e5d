# SPDX-License-Identifier: Apache-2.0
"""What the answer to an as-of join is: every right row looked at with Python's own arithmetic."""

from host.query.quantities import Duration
from host.reference.types import Direction
from tests.host.tables import exact_difference
from tests.paths.asof_cases import AsofCase
from tests.paths.oracle import difference, expected_names, row_of

__all__ = ["compare_asof"]


def compare_asof(case: AsofCase, names: list[str], rows: list[str], *, ordered: bool) -> str:
    """Return what is wrong with an answer; nothing if it is right."""
    wanted = expected_names(case), _expected_rows(case)
    return difference(f"{case} ({case.query})", (names, rows), wanted, ordered=ordered)


def _expected_rows(case: AsofCase) -> list[str]:
    """Return the rows of the answer, in the order of the left times, then of the input."""
    query = case.query
    lefts, rights = (table.to_pylist() for table in (case.left, case.right))
    nobody = (None,) * case.right.num_columns
    rows = []
    for left in sorted(lefts, key=lambda row: row[query.time[0]]):
        partner = _partner(left, rights, query)
        if partner is not None:
            rows.append(row_of((*left.values(), *partner.values())))
        elif query.how.value == "left":
            rows.append(row_of((*left.values(), *nobody)))
    return rows


def _partner(left, rights, query):
    """Return the right row of a left row, if there is one."""
    width = query.within
    if isinstance(width, Duration):
        width = width.nanoseconds
    found = None
    for number, right in enumerate(rights):
        away = exact_difference(right[query.time[1]], left[query.time[0]])
        if not all(_equal(left[own], right[other]) for own, other in query.on):
            continue
        is_later, distance = away > 0, abs(away)
        if not away and not query.allow_exact_matches:
            continue
        if away and query.direction is (Direction.BACKWARD if is_later else Direction.FORWARD):
            continue
        if width is not None and distance > width:
            continue
        # Among rows of one time, looking ahead finds the first one and looking back the last one. A
        # row of the left row's own time is found by looking back, unless that is not done.
        ahead = is_later or query.direction is Direction.FORWARD
        rank = (distance, is_later, number if ahead else -number)
        if found is None or rank < found[0]:
            found = rank, right
    return None if found is None else found[1]


def _equal(left, right):
    if left is None or right is None:
        return False
    return left == right or (left != left and right != right)  # all NaN are equal, as in SQL
