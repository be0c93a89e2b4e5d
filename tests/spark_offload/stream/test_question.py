# SPDX-License-Identifier: Apache-2.0
"""A checkpoint answers the question that it was begun with, and no other one."""

from dataclasses import replace
from datetime import timedelta
import json

import pytest

from host import UsageError
from host.query.quantities import as_duration
from host.query.queries import Query
from host.reference.types import JoinType
from spark_offload.stream.task import (
    question_of,
    question_of_groups,
    require_group,
    require_question,
)
from tests.spark_offload.stream.state_model import GroupState

QUERY = Query(
    on="k",
    band=[("x", "y", -1, 2)],
    time=("t", "s"),
    within=as_duration(timedelta(seconds=5)),
)


def test_everything_that_the_kept_rows_depend_on_is_part_of_the_question():
    question = question_of(QUERY, "t timestamp", "s timestamp") | question_of_groups(8)
    assert question == {
        "format": "3",
        "how": "inner",
        "terms": " and ".join(sorted(map(str, QUERY.terms))),
        "order": "t, s",
        "within": str(QUERY.width),
        "left": "t timestamp",
        "right": "s timestamp",
        "partitions": "8",
    }
    turned = replace(QUERY, band=QUERY.band[::-1])
    assert question_of(turned, "a", "b") == question_of(QUERY, "a", "b")
    plain = replace(QUERY, on=(), band=(), within=7, how=JoinType.FULL)
    found = question_of(plain, "a", "b")
    assert (found["terms"], found["within"], found["how"]) == ("none", "7", "full")


def test_the_first_question_is_written_down_and_asked_again_unchanged():
    store = GroupState().question
    question = question_of(QUERY, "left", "right")
    require_question(store, question)
    written = store.get()
    assert json.loads(written[0]) == question
    assert written[0] == json.dumps(question, sort_keys=True)
    require_question(store, dict(reversed(question.items())))
    assert store.get() == written


@pytest.mark.parametrize("name", ["format", "how", "terms", "order", "within", "left", "right"])
def test_what_differs_is_named(name):
    store = GroupState().question
    question = question_of(QUERY, "left", "right")
    require_question(store, question)
    now = question | {name: "another"}
    shown = {"terms": "on, band and where", "order": "time"}.get(name, name)
    words = (
        f"The checkpoint of this query was begun with {shown} = {question[name]}, but now it "
        f"is another; the kept rows do not fit: start the query as it was begun, or begin anew "
        f"with an empty checkpointLocation and an empty sink."
    )
    with pytest.raises(UsageError) as raised:
        require_question(store, now)
    assert str(raised.value) == words


def test_a_checkpoint_that_tells_no_type_of_join_is_of_an_inner_join():
    store = GroupState().question
    question = question_of(QUERY, "left", "right")
    store.update((json.dumps({name: question[name] for name in question if name != "how"}),))
    require_question(store, question)
    with pytest.raises(UsageError, match="begun with how = inner, but now it is left"):
        require_question(store, question | {"how": "left"})
    with pytest.raises(UsageError, match="begun with partitions = None, but now it is 2"):
        require_question(store, question | question_of_groups(2))


def test_rows_of_a_group_that_there_is_no_more_are_named():
    require_group(7, (3, 7))
    words = r"none of among 2 groups \(partitions=2\): it was begun with more; start the query as"
    with pytest.raises(UsageError, match=words):
        require_group(5, (3, 7))
