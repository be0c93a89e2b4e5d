# SPDX-License-Identifier: Apache-2.0
"""A checkpoint belongs to one question: the kept rows answer no other one.

Spark itself compares the schema of the state only. Groups that are cut otherwise would not find
their rows any more, and nobody would notice; so the first rows after a start are held against what
the checkpoint was begun with.
"""

from collections.abc import Mapping, Sequence
import hashlib
import json
from typing import TYPE_CHECKING

import pyarrow as pa

from host import UsageError
from host.query.queries import AggregateQuery, JoinQuery
from host.reference.types import JoinType

if TYPE_CHECKING:
    from spark_offload.streaming.state_protocols import ValueStore

__all__ = [
    "question_of",
    "question_of_aggregation",
    "question_of_groups",
    "question_type",
    "require_group",
    "require_question",
]

FORMAT = "3"
"""Of the state."""

_MARKS, _MOST_DIGITS = 6, 38
"""Fewest fields of the type of a question, and the types of decimal numbers that each may have."""

_REMEDY = (
    "start the query as it was begun, or begin anew with an empty checkpointLocation and an empty "
    "sink"
)


def question_of(query: JoinQuery, left: str, right: str) -> dict[str, str]:
    """Return what must stay the same, by the names of the arguments of ``stream_join``.

    Parameters
    ----------
    query : JoinQuery
        What is joined.
    left, right : str
        Columns and types of the inputs.
    """
    return {
        "format": FORMAT,
        "how": query.how.value,
        "terms": " and ".join(sorted(map(str, query.terms))) or "none",
        "order": ", ".join(query.order),
        "within": str(getattr(query.window, "lifespan", query.window)),
        "left": left,
        "right": right,
    }


def question_of_aggregation(query: AggregateQuery, given: str) -> dict[str, str]:
    """Return what must stay the same of an aggregation, by the arguments of its function.

    Parameters
    ----------
    query : AggregateQuery
        What is aggregated.
    given : str
        Columns and types of the input.
    """
    return {
        "window": str(query.window),
        "advance": str(query.advance),
        "time": query.time,
        "keys": ", ".join(query.keys),
        "aggregates": ", ".join(map(str, query.aggregates.values())),
        "columns": given,
    }


def question_of_groups(number: int) -> dict[str, str]:
    """Return what must stay the same of ``number`` groups, to be added to the question."""
    return {"partitions": str(number)}


def require_question(store: "ValueStore", question: Mapping[str, str]) -> None:
    """Raise unless the checkpoint was begun with ``question``; write it down if it is new.

    Raises
    ------
    UsageError
        If they differ, naming in what.
    """
    found = store.get()
    if found is None:
        store.update((json.dumps(dict(question), sort_keys=True),))
        return
    begun = {"how": JoinType.INNER.value} | json.loads(str(found[0]))  # once there was no other
    for name, now in question.items():
        if begun.get(name) != now:
            raise UsageError(
                f"The checkpoint of this query was begun with {name} = {begun.get(name)}, but now "
                f"{name} is {now}; the kept rows do not fit: {_REMEDY}."
            )


def question_type(question: Mapping[str, str]) -> pa.DataType:
    """Return a type that two different questions do not share.

    Where Spark itself keeps the state, it compares the types of what is kept with those of the
    checkpoint, when the query starts; a column of this type, whose values are all null, makes it
    compare the question too. The types of the fields are a hash of the question, and their names
    tell it in Spark's error.
    """
    mark = hashlib.sha256(json.dumps(dict(question), sort_keys=True).encode()).digest()
    names = [f"{name} = {text}" for name, text in question.items()]
    names += [f"mark {at}" for at in range(len(names), _MARKS)]
    digits = [1 + mark[at] % _MOST_DIGITS for at in range(len(names))]
    return pa.struct([(name, pa.decimal128(n, 0)) for name, n in zip(names, digits, strict=True)])


def require_group(group: int, groups: Sequence[int]) -> None:
    """Raise if rows are kept for a group that this query does not have.

    Raises
    ------
    UsageError
        If so.
    """
    if group not in groups:
        raise UsageError(
            f"The checkpoint of this query holds rows of a group that there is none of among "
            f"{len(groups)} groups (partitions={len(groups)}): it was begun with more; {_REMEDY}."
        )
