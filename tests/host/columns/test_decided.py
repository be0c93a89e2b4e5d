# SPDX-License-Identifier: Apache-2.0
"""Accelerators with a predicate of their own: which joins they decide, and which they refuse."""

from dataclasses import replace
import random

import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import Query, UsageError, join, open_device
from host.columns.decided import decided_by
from host.errors import AcceleratorLimitError
from host.protocol.manifest import Manifest
from host.session.join import Join
from tests.host.simulated_bundle import simulated_bundle
from tests.host.small_bundles import write_manifest
from tests.paths.cases import Case
from tests.paths.oracle import compare, row_of

NEAR = "abs(l.x - r.x) <= 3 and l.city != r.city"
BUNDLES = {
    "near": {"where": NEAR},
    "either": {"where": "l.x * r.x > 6 or l.city == r.city or not (l.x < r.x)"},
    "cards": {
        "predicate": "hdl.predicates.not_equal:NotEqual",
        "keys": (KeyField(name="card", bits=9), KeyField(name="city", bits=4, signed=False)),
    },
    "points": {
        "predicate": "hdl.predicates.distance:within_25",
        "keys": (KeyField(name="x", bits=12), KeyField(name="y", bits=12)),
    },
    "one side": {"where": "l.x > 2 and r.city < 3 and l.x != r.city"},
}
KEYS = (KeyField(name="x", bits=7), KeyField(name="city", bits=4, signed=False))


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Bundles by name, which the software device opens."""
    folder = tmp_path_factory.mktemp("decided")
    found = {}
    for name, changes in BUNDLES.items():
        parameters = JoinParameters.of(
            **{"cores": 3, "sub_window": 20, "timestamp_bits": 32, "probes": 2, "keys": KEYS}
            | {"comparator": "custom", **changes}
        )
        found[name] = write_manifest(parameters, folder / name.replace(" ", "_"))
    return found


def rows(seed, *, nulls=True, texts=True):
    """Random rows: a number, a text, a card, and a place in the plane."""
    rng, count = random.Random(seed), 40
    none = [None] if nulls else []
    names = ["ab", "cd", "ef", "é"] if texts else [0, 1, 2, 3]
    return pa.table(
        {
            "t": sorted(rng.randrange(60) for _ in range(count)),
            "n": pa.array([rng.choice([*none, *range(-5, 6)]) for _ in range(count)], pa.int32()),
            "town": [rng.choice([*none, *names]) for _ in range(count)],
            "card": pa.array([rng.choice([*none, 9, 10**12, 10**15]) for _ in range(count)]),
            "x": [rng.randrange(-60, 60) for _ in range(count)],
            "y": [rng.randrange(-60, 60) for _ in range(count)],
        }
    )


ASKED = {
    "near": [
        ("l.town != r.town and 3 >= abs(l.n - r.n)", {}),
        ("abs(l.n - r.x) <= 3 and l.town != r.town and l.y < r.y", {}),
        ("abs(l.n - r.n) <= 3 and l.town != r.town", {"on": "card", "band": {"x": (-9, 40)}}),
    ],
    "cards": [
        ("l.town != r.town", {"on": "card"}),
        ("l.card == r.card and r.town != l.town and l.x * 2 > r.x", {}),
    ],
    "points": [
        ("(l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y) <= 625", {}),
        ("(l.x - r.x) * (l.x - r.x) + (l.y - r.y) * (l.y - r.y) <= 625 and l.n != r.n", {}),
    ],
    "either": [("l.n * r.n > 6 or l.town == r.town or not (l.n < r.n)", {})],
    "one side": [("l.n > 2 and r.town < 3 and l.n != r.town", {})],
}


@pytest.mark.few(18)
@pytest.mark.parametrize("how", ["inner", "full", "left_anti"])
@pytest.mark.parametrize(
    ("bundle", "place"), [(name, n) for name, asked in ASKED.items() for n in range(len(asked))]
)
@pytest.mark.parametrize("streamed", [False, True], ids=["tables", "streams"])
def test_pairs_are_those_of_the_query(bundles, bundle, place, how, streamed):
    where, words = ASKED[bundle][place]
    own = {"nulls": bundle != "either", "texts": bundle != "one side"}
    tables = [rows(10 * place + side, **own) for side in (0, 1)]
    window = {"rows": 7} if place else {"within": 9}
    query = Query(time="t", where=where, how=how, sorted=streamed, **window, **words)
    given = tables
    if streamed:
        given = [
            pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
            for table in tables
        ]
    with open_device(f"software:{bundles[bundle]}") as device:
        asked = Join(*given, query, device)
        table = asked.run().table
    found = [row_of(row.values()) for row in table.to_pylist()]
    assert compare(Case(bundle, *tables, query), table.column_names, found, ordered=True) == ""
    assert asked.plan.decided is not None


@pytest.mark.long
@pytest.mark.parametrize("bundle", ["points", pytest.param("near", marks=pytest.mark.long)])
def test_the_circuit_has_the_answer_in_order(bundle, tmp_path):
    """Of the pipeline with multipliers, three lanes and two probes are compared at once."""
    changes = {"keys": KEYS, "lanes": 1} | BUNDLES[bundle]
    parameters = JoinParameters.of(
        **{"cores": 3, "sub_window": 20, "timestamp_bits": 16, "probes": 2, "comparator": "custom"}
        | {"lanes": 3 if bundle == "points" else 1}
        | {name: value for name, value in changes.items() if name != "lanes"}
    )
    where, words = ASKED[bundle][1]
    with open_device(simulated_bundle(parameters, tmp_path / "bundle")) as device:
        for seed, how in ((3, "inner"), (4, "full")):
            tables = rows(seed), rows(seed + 50)
            query = Query(time="t", where=where, how=how, within=12, **words)
            asked = Join(*tables, query, device)
            table = asked.run().table
            found = [row_of(row.values()) for row in table.to_pylist()]
            case = Case(bundle, *tables, query)
            assert compare(case, table.column_names, found, ordered=True) == ""
            assert asked.plan.decided is not None


@pytest.mark.parametrize(
    ("bundle", "where", "message"),
    [
        ("near", "abs(l.n - r.n) <= 4 and l.town != r.town", "generate one for it, `python -m hdl"),
        ("near", "abs(l.n - r.n) <= 3", "and the query asks for (abs(l.n - r.n) <= 3)"),
        ("near", "abs(l.n - r.x) <= 3 and l.town != r.n or l.x < 1", "the accelerator finds"),
        ("points", "l.x < r.x", "--key x:12 --key y:12"),
        ("near", None, "the query asks for no condition"),
    ],
)
def test_a_query_that_asks_for_something_else_is_told_what_to_generate(
    bundles, bundle, where, message
):
    query = Query(time="t", within=3, where=where)
    with pytest.raises(AcceleratorLimitError) as caught:
        join(rows(1), rows(2), query, device=f"software:{bundles[bundle]}")
    assert message.lower() in str(caught.value).lower()
    with pytest.raises(AcceleratorLimitError):
        decided_by(Manifest.load(bundles[bundle]), query)


def test_what_the_accelerator_cannot_hold_is_refused(bundles):
    query = Query(time="t", within=3, where=NEAR.replace("city", "town").replace("x", "n"))
    far = rows(1).set_column(1, "n", pa.array([64] + [0] * 39))
    with pytest.raises(AcceleratorLimitError, match=r"left\.n.*64"):
        join(far, rows(2), query, device=f"software:{bundles['near']}")
    wide = rows(1).set_column(2, "town", pa.array([str(n) for n in range(40)]))
    streams = [
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        for table in (wide, rows(2))
    ]
    for tables in ((wide, rows(2)), streams):
        asked = replace(query, sorted=tables is streams)
        with pytest.raises(AcceleratorLimitError, match="distinct values"):
            join(*tables, asked, device=f"software:{bundles['near']}")
    either = Query(time="t", within=3, where=ASKED["either"][0][0])
    with pytest.raises(AcceleratorLimitError, match="has a null in row"):
        join(rows(1), rows(2), either, device=f"software:{bundles['either']}")
    floats = rows(1).set_column(1, "n", pa.array([0.5] * 40))
    with pytest.raises(UsageError, match=r"whole numbers.*left\.n"):
        join(floats, floats, query, device=f"software:{bundles['near']}")


def test_a_band_finds_candidates_for_any_condition(tmp_path):
    parameters = JoinParameters.of(cores=2, sub_window=30, timestamp_bits=32)
    bundle = write_manifest(parameters, tmp_path / "band")
    tables = rows(5), rows(6)
    for where, field in (
        ("abs(l.n - r.n) <= 2 and l.town != r.town", True),
        ("abs(l.n - r.n) <= 2 and l.x - r.x >= 3 and l.card == r.card", True),
        ("l.town < r.town", False),
    ):
        query = Query(time="t", within=9, where=where, how="full")
        with open_device(f"software:{bundle}") as device:
            asked = Join(*tables, query, device)
            table = asked.run().table
        found = [row_of(row.values()) for row in table.to_pylist()]
        assert compare(Case(where, *tables, query), table.column_names, found, ordered=True) == ""
        assert bool(asked.plan.fields) == field
