# SPDX-License-Identifier: Apache-2.0
"""Whether a join aggregate can answer a query, as far as its rows are not seen."""

from collections.abc import Mapping

import pyarrow as pa

from host.aggregate.values import AggregateStates
from host.encode import EncodedJoin, encode
from host.join.device_matches import require_exact
from host.manifest import JoinAggregateManifest
from host.query.aggregate_query import Aggregate
from host.query.join_query import JoinQuery

__all__ = ["require_matches"]


def require_matches(
    left: pa.Schema,
    right: pa.Schema,
    query: JoinQuery,
    aggregates: Mapping[str, Aggregate],
    manifest: JoinAggregateManifest,
) -> EncodedJoin:
    """Raise unless a join aggregate can answer a query about columns of these types.

    Whether values, times and windows fit is known from the rows only.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of both tables.
    query : JoinQuery
        Which rows match.
    aggregates : mapping of str to Aggregate
        What is computed of the right columns.
    manifest : JoinAggregateManifest
        Of the accelerator.

    Returns
    -------
    EncodedJoin
        The encoding of no rows, whose fields are those of the terms.

    Raises
    ------
    AcceleratorLimitError
        If it compares or aggregates no such columns.
    UsageError
        If the query does not suit the columns.
    """
    encoded = encode(left.empty_table(), right.empty_table(), query, manifest)
    require_exact(encoded)
    states = AggregateStates(right, aggregates)
    for name in dict.fromkeys(one.column for one in aggregates.values() if one.column is not None):
        states.require_integers(name)
    return encoded
