# SPDX-License-Identifier: Apache-2.0
import pytest

from host.devices.bundles import suitable_engine
from host.query.queries import Query, Term


@pytest.mark.parametrize(
    ("terms", "engine", "says"),
    [
        ([], "scan", "no term is bounded on both sides"),
        ([Term("a", "b", low=0, high=None)], "scan", "no term is bounded on both sides"),
        ([Term("a", "b")], "index", "left.a = right.b"),
        ([Term("a", "b", low=-1, high=2)], "index", "-1 <= left.a - right.b <= 2"),
        (
            [Term("a", "b", low=-1, high=2), Term("c", "c"), Term("d", "d", low=None, high=0)],
            "index",
            "left.c = right.c",
        ),
    ],
)
def test_the_index_is_for_terms_that_bound_what_can_match(terms, engine, says):
    chosen, why = suitable_engine(Query(band=terms, time="t", rows=5))
    assert chosen == engine
    assert says in why
