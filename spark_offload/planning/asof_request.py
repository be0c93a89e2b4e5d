# SPDX-License-Identifier: Apache-2.0
"""The arguments of :func:`~spark_offload.asof_join` as one ``AsofQuery``."""

from typing import TypeAlias

from host.query.quantities import parse_duration
from host.query.queries import AsofQuery
from host.reference.asof import Direction
from host.reference.types import JoinType
from spark_offload.planning.request import Equalities, Length, column_pair, equal_columns

__all__ = ["OnColumns", "build_asof_query"]

OnColumns: TypeAlias = "str | tuple[str, str]"
"""One column name, or a (left, right) pair."""


def build_asof_query(
    *,
    on: OnColumns,
    by: Equalities,
    direction: str | Direction,
    tolerance: Length,
    allow_exact_matches: bool,
    how: str | JoinType,
    sorted: bool,
    suffix: str,
) -> AsofQuery:
    """Return the query that the arguments ask for, or raise naming the one that is wrong."""
    if isinstance(tolerance, str):
        tolerance = parse_duration(tolerance, "tolerance")
    return AsofQuery(
        on=column_pair(on, "on"),
        by=equal_columns(by, "by"),
        direction=Direction.of(direction),
        tolerance=tolerance,
        allow_exact_matches=bool(allow_exact_matches),
        how=JoinType.of(how),
        sorted=bool(sorted),
        suffix=suffix,
    )
