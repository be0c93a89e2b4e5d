# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches on devices that send one word per left row, against the reference join."""

from contextlib import nullcontext

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import open_device
from host.devices.selftest import self_test
from host.devices.simulated import SimulatedDevice
from host.errors import AcceleratorLimitError, CapacityError
from host.operators.matches import aggregate_matches
from host.operators.verification import reference_pairs
from host.pipeline import Pipeline
from host.query.queries import Query, Term
from host.reference.window import CountWindow, TimeWindow
from host.session.join import join_tables
from tests.host.simulated_bundle import simulated_bundle
from tests.host.small_bundles import write_manifest
from tests.windows import over

#: Three cores, of which two together hold an odd number of tuples.
PARAMETERS = JoinParameters.of(
    cores=3, sub_window=17, keys=(KeyField(name="x", bits=8), KeyField(name="y", bits=6)),
    timestamp_bits=10, lanes=2, probes=3, fan_in=2, probe_bits=2, value_bits=7,
)  # fmt: skip
SCHEMA = pa.schema(
    [("t", pa.int64()), ("x", pa.int16()), ("k", pa.string()), ("v", pa.int32()), ("w", pa.int64())]
)
TERMS = (Term("x", "x", -2, 1), Term("k", "k"))
AGGREGATES = {
    "n": "count", "values": "count:v", "total": "sum:v", "low": ("min", "v"), "high": "max:w",
    "mean": "mean:v", "names": "count:k", "large": "sum:w",
}  # fmt: skip
BIG = 1 << 62


def tables():
    number = st.integers(-3, 3)
    rows = st.fixed_dictionaries(
        {
            "t": st.integers(-4, 12),
            "x": st.none() | number,
            "k": st.sampled_from("aab") | st.none(),
            "v": st.none() | st.integers(-50, 50),
            "w": number.map(lambda n: n + BIG),
        }
    )
    return st.lists(rows, max_size=14).map(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


def expected(left, right, query):
    """Aggregate the pairs of the reference join, row by row."""
    matched = [[] for _ in range(left.num_rows)]
    others = right.to_pylist()
    for own, other in zip(*reference_pairs(left, right, query), strict=True):
        matched[own].append(others[other])
    rows = []
    for row, matches in zip(left.to_pylist(), matched, strict=True):
        values = [match["v"] for match in matches if match["v"] is not None]
        large = [match["w"] for match in matches]
        rows.append(
            row
            | {
                "n": len(matches),
                "values": len(values),
                "total": sum(values) if values else None,
                "low": min(values, default=None),
                "high": max(large, default=None),
                "mean": sum(values) / len(values) if values else None,
                "names": sum(match["k"] is not None for match in matches),
                "large": sum(large) if large else None,
            }
        )
    return rows


def check(device, left, right, window):
    query = Query(band=TERMS, time="t", **over(window))
    wanted = expected(left, right, query)
    asked = dict(AGGREGATES)
    if any(row["large"] is not None and row["large"] >= 1 << 63 for row in wanted):
        del asked["large"]  # no column holds it
        wanted = [{name: row[name] for name in row if name != "large"} for row in wanted]
    result = aggregate_matches(left, right, query, asked, device)
    assert result.to_pylist() == wanted
    assert result.schema.field("low").type == pa.int32()


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    place = write_manifest(PARAMETERS, tmp_path_factory.mktemp("bundle"))
    with open_device(f"software:{place}") as device:
        yield device


WINDOWS = st.integers(0, 20).map(TimeWindow) | st.integers(1, 9).map(CountWindow)


@settings(max_examples=60)
@given(left=tables(), right=tables(), window=WINDOWS)
def test_the_model_answers_as_the_reference_join(modelled, left, right, window):
    check(modelled, left, right, window)


@pytest.fixture(scope="module", params=[(0, 0), (80, 130)], ids=["free", "stalled"])
def simulated(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    simulated_bundle(PARAMETERS, folder / "bundle")
    stall_in, stall_out = request.param
    with SimulatedDevice(
        folder / "bundle", seed=4, stall_in=stall_in, stall_out=stall_out
    ) as device:
        yield device


@pytest.mark.long
@settings(max_examples=60)
@given(left=tables(), right=tables(), window=WINDOWS)
def test_the_circuit_answers_as_the_reference_join(simulated, left, right, window):
    check(simulated, left, right, window)


def test_a_pipeline_asks_the_same_device(modelled):
    left = pa.Table.from_pylist([{"t": 1, "x": 0, "k": "a"}, {"t": 5, "x": 9, "k": "a"}], SCHEMA)
    right = pa.Table.from_pylist(
        [{"t": 0, "x": 0, "k": "a", "v": 3}, {"t": 2, "x": 1, "k": "a", "v": 4}], SCHEMA
    )
    query = Query(band=TERMS, time="t", within=9)
    result = Pipeline.of_table(left).join_aggregate(
        Pipeline.of_table(right), query, {"n": "count", "total": "sum:v"}, modelled
    )
    assert result.select(["n", "total"]).to_pylist() == [
        {"n": 2, "total": 7}, {"n": 0, "total": None},
    ]  # fmt: skip
    assert modelled.counters()["results"] == modelled.counters()["tuples_r"]


def right_rows(*values, **columns):
    rows = [{"t": n, "x": 0, "k": "a", "v": value, **columns} for n, value in enumerate(values)]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize(
    ("aggregates", "right", "changes", "kind", "message"),
    [
        ({"s": "sum:v"}, right_rows(0, 128), {}, AcceleratorLimitError,
         "from 0 to 128 need 8 bits, .* has 7.* generate it with --value-bits 8"),
        ({"n": "count"}, right_rows(*[0] * 60), {}, CapacityError,
         "side S .right. outgrew the capacity of 51 tuples with its tuple number 51"),
        ({"n": "count"}, right_rows(0), {"within": 900}, None, ""),
        ({"n": "count"}, right_rows(0, t=600), {"within": 900}, AcceleratorLimitError,
         "times of 11 bits, but the accelerator's timestamps have 10; .* --timestamp-bits 11"),
        ({"s": "sum:f"}, right_rows(0).append_column("f", pa.array([0.5])), {},
         AcceleratorLimitError, "Column 'f' holds floats, but the accelerator adds up integers"),
        ({"n": "count"}, right_rows(0).append_column("f", pa.array([0.5])),
         {"band": {"f": (-0.25, 0.25)}}, AcceleratorLimitError,
         "must be compared once more by their rows, but the accelerator sends no pairs"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_told_before_it_is_sent(
    modelled, aggregates, right, changes, kind, message
):
    query = Query(**{"band": TERMS, "time": "t", "within": 99, **changes})
    left = right_rows(0).select(["t", "x", "k"]).append_column("f", pa.array([0.5]))
    if kind is None:
        assert aggregate_matches(left, right, query, aggregates, modelled)["n"].to_pylist() == [1]
        return
    with pytest.raises(kind, match=message):
        aggregate_matches(left, right, query, aggregates, modelled)


def test_a_join_of_pairs_is_refused(modelled):
    query = Query(band=TERMS, time="t", within=9)
    with pytest.raises(AcceleratorLimitError, match="is a join aggregate, which sends what the"):
        join_tables(right_rows(0), right_rows(0), query, modelled)
    with pytest.raises(AcceleratorLimitError, match="and no pairs; ask `aggregate_matches`"):
        Pipeline.of_table(right_rows(0)).join(
            Pipeline.of_table(right_rows(0)), query, modelled
        ).collect()
    with pytest.raises(AcceleratorLimitError, match="use a bundle that was generated without"):
        list(self_test(lambda: nullcontext(modelled)))
