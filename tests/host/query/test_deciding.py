# SPDX-License-Identifier: Apache-2.0
"""The predicate of an accelerator that is generated for a condition: it decides the condition."""

import argparse
import random

import pytest

from hdl.options import add_parameter_options, parameters_from
from host import Query, open_device
from host.query.conditions import Condition
from host.query.deciding import predicate_for
from host.session.join import Join
from tests.host.columns.test_decided import rows
from tests.host.small_bundles import write_manifest
from tests.paths.cases import Case
from tests.paths.oracle import compare, row_of

#: Parts of conditions, without nulls in what they compute with, and which of them a circuit has.
PARTS = {
    "l.x < r.y": True,
    "l.town != r.town": True,
    "l.x * r.x > l.y - 30": True,
    "not (l.y % 7 == r.x % 7 or max(l.x, r.y) < -20)": True,
    "l.card == r.card or l.x < 3": True,
    "r.y > -40": True,
    "l.x != r.y": True,
    "l.town != 'ab'": False,
    "l.x * 0.5 < r.y": False,
    "l['town'] < r.town or l.town == 'cd'": False,
}


def parameters_of(predicate):
    """What the builder makes of the options of a predicate, small."""
    parser = argparse.ArgumentParser()
    add_parameter_options(parser)
    given = parser.parse_args(list(predicate.options))
    return parameters_from(given).with_(cores=3, sub_window=20, timestamp_bits=32, probes=2)


@pytest.mark.parametrize("seed", range(12))
def test_an_accelerator_with_the_predicate_has_the_answer(seed, tmp_path):
    rng = random.Random(seed)
    parts = rng.sample(sorted(PARTS), rng.randrange(1, 5))
    where = " and ".join(f"({part})" for part in parts)
    predicate = predicate_for(Condition(where))
    if not any(PARTS[part] for part in parts):
        assert predicate is None
        return
    bundle = write_manifest(parameters_of(predicate), tmp_path / "own")
    tables = rows(seed, nulls=False), rows(seed + 50, nulls=False)
    query = Query(time="t", where=where, within=12, how=rng.choice(["inner", "full", "left_anti"]))
    with open_device(f"software:{bundle}") as device:
        asked = Join(*tables, query, device)
        table = asked.run().table
    found = [row_of(row.values()) for row in table.to_pylist()]
    assert compare(Case(where, *tables, query), table.column_names, found, ordered=True) == ""
    own = len(Condition(predicate.where).parts)
    assert own == sum(PARTS[part] for part in parts)
    assert (asked.plan.decided.rest is None) == all(PARTS[part] for part in parts)


@pytest.mark.parametrize(
    ("where", "own", "fields"),
    [
        ("l.a < r.b and l.c != r.d", "(l.f1 < r.f1) & (l.f0 != r.f0)", 2),
        ("l.a != r.b and l.a != r.c", "(l.f0 != r.f0) & (l.f0 != r.f1)", 2),
        ("l.a != r.b and l.a < 5", "(l.f0 != r.f0) & (l.f0 < 5)", 1),
        ("l['a b'] * 2 > r.r", "l.f0 * 2 > r.f0", 1),
        ("l.a == 'x'", None, 0),
    ],
)
def test_columns_have_as_few_fields_as_they_need(where, own, fields):
    found = predicate_for(Condition(where))
    assert (found and found.where) == own
    assert len(found.fields if found else ()) == fields
