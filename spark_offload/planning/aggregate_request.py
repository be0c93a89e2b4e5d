# SPDX-License-Identifier: Apache-2.0
"""The arguments of :func:`~spark_offload.stream_aggregate` as one ``AggregateQuery``."""

from collections.abc import Mapping, Sequence

from host import UsageError
from host.query.queries import Aggregate, AggregateQuery, Span
from spark_offload.planning.request import Length, as_length

__all__ = ["build_aggregate_query"]


def build_aggregate_query(
    *,
    time: str,
    window: Length,
    advance: Length,
    keys: str | Sequence[str],
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
) -> AggregateQuery:
    """Return the query that the arguments ask for, or raise naming the one that is wrong."""
    if not isinstance(aggregates, Mapping):
        raise UsageError(
            f"aggregates must map names to aggregates, as in {{'n': 'count'}}, not {aggregates!r}."
        )
    return AggregateQuery(
        time=time,
        window=_span(window, "window"),
        advance=None if advance is None else _span(advance, "advance"),
        keys=(keys,) if isinstance(keys, str) else tuple(keys),
        aggregates={name: Aggregate.of(given) for name, given in aggregates.items()},
    )


def _span(length: Length, name: str) -> Span:
    if length is None:
        raise UsageError(f"The {name} must be given, such as {name}='5min'.")
    return as_length(length, name)
