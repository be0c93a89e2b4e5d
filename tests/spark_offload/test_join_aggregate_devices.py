# SPDX-License-Identifier: Apache-2.0
"""Aggregates of matches on join aggregates, as Spark's own join and aggregation give them."""

from decimal import Decimal
import random

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import UsageError
from host.errors import AcceleratorLimitError, CapacityError, OrderError
from spark_offload import (
    explain,
    join_aggregate,
    metrics,
    plan_join_aggregate,
    stream_join,
    task_error,
    verify,
)
from tests.host.simulated_bundle import simulated_bundle as built
from tests.host.small_bundles import write_manifest
from tests.spark_offload.stream_folders import rows_of

#: Three cores, which hold 63 right rows together, and values of 44 bits.
PARAMETERS = JoinParameters.of(
    cores=3, sub_window=21, keys=(KeyField(name="x", bits=8), KeyField(name="y", bits=6)),
    timestamp_bits=10, lanes=2, probes=3, fan_in=2, probe_bits=2, value_bits=44,
)  # fmt: skip
AGGREGATES = {
    "n": "count", "prices": "count:price", "total": "sum:price", "low": "min:price",
    "mean": ("mean", "price"), "last": "max:a", "names": "count:name",
}  # fmt: skip
ASKED = {
    "on": "k",
    "band": {("x", "a"): (-3, 3)},
    "time": "t",
    "within": 12,
    "aggregates": AGGREGATES,
}


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The address of a model of the accelerator."""
    return f"software:{write_manifest(PARAMETERS, tmp_path_factory.mktemp('bundle'))}"


@pytest.fixture(scope="module")
def frames(spark):
    """Rows some of which are equal, with nulls in keys and values, and with and without matches."""
    rng = random.Random(56)

    def rows(count):
        return [
            (rng.randrange(100), rng.choice(["a", "b", None]), rng.choice([*range(20), None]),
             rng.choice([None, 1, 5, -(1 << 40)]), rng.choice("uvw"))
            for _ in range(count)
        ]  # fmt: skip

    left = spark.createDataFrame(
        [*rows(60), *rows(20) * 2], "t int, k string, x int, p long, m string"
    )
    right = spark.createDataFrame(rows(120), "t int, k string, a int, price long, name string")
    return left.repartition(3).cache(), right.repartition(2).cache()


def on_pairs(frames, asked):
    """The same question to a device of pairs."""
    return rows_of(join_aggregate(*frames, **{**asked, "device": "software:"}))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "placed",
    [
        {"partition_by": "key", "partitions": 3},
        {"partition_by": "range", "partitions": 4},
        {"on": None, "within": None, "rows": 7, "partitions": 3},
        pytest.param({"on": None, "band": None, "partitions": 3}, marks=pytest.mark.long),
        pytest.param(
            {"on": None, "within": None, "rows": 9, "partitions": 1}, marks=pytest.mark.long
        ),
    ],
    ids=str,
)
def test_each_left_row_has_the_aggregates_of_its_matches(frames, device, placed):
    asked = {**ASKED, **placed, "device": device, "strict": True}
    answer = join_aggregate(*frames, **asked)
    found = rows_of(answer)
    assert found == on_pairs(frames, {**asked, "strict": False})
    assert found.total() == 100
    assert answer.columns == ["t", "k", "x", "p", "m", *AGGREGATES]
    measured = metrics(answer)
    assert len(measured.tasks) > 1 or placed["partitions"] == 1
    assert measured.total("left_rows") == measured.total("results") == 100
    counts = measured.counters()
    assert 0 < counts["results"] == counts["tuples_r"]  # one word per left row and column
    assert measured.total("software_rows") == 0


@pytest.mark.long
def test_the_simulated_accelerator_gives_the_same_answer(frames, tmp_path_factory):
    uri = built(PARAMETERS, tmp_path_factory.mktemp("simulated") / "bundle")
    answer = join_aggregate(*frames, **ASKED, device=uri, partitions=2, strict=True)
    assert rows_of(answer) == on_pairs(frames, ASKED)
    measured = metrics(answer)
    assert all(task.cycles > 0 and task.device == uri for task in measured.tasks)
    assert verify(answer).rows == 100


@pytest.mark.long
@pytest.mark.parametrize(
    ("window", "passes"), [({"within": 24}, 1), ({"rows": 24}, 2)], ids=["time", "rows"]
)
def test_explain_estimates_the_cycles_of_the_accelerator(spark, tmp_path_factory, window, passes):
    parameters = PARAMETERS.with_(timestamp_bits=13)
    uri = built(parameters, tmp_path_factory.mktemp("estimated") / "bundle")
    left = spark.range(2000).selectExpr("int(2 * id) AS t", "int(id % 8) AS x")
    right = spark.range(2000).selectExpr(
        "int(2 * id + 1) AS t", "int(100 + id % 8) AS x", "id AS p", "id % 9 AS q"
    )
    asked = {"on": "x", "time": "t", "device": uri, "partitions": 1, "strict": True, **window}
    cycles = {}
    for aggregates in ({"n": "count"}, {"low": "min:p", "high": "max:p", "n": "sum:q"}):
        answer = join_aggregate(left, right, **asked, aggregates=aggregates)
        said = explain(answer, count=True)
        assert said.inputs.rows == (2000, 2000)
        assert answer.where("n > 0").count() == 0  # nothing matches
        counted = metrics(answer).counters()["cycles"]
        assert said.cost.cycles <= 1.02 * counted
        assert said.cost.cycles == pytest.approx(counted, rel=0.1)
        assert "more where many rows match; " in str(said.cost)
        cycles[len(aggregates)] = said.cost.cycles
    assert cycles[3] == 2 * cycles[1]  # a pass for each column
    assert not said.cost.cycles % passes


def test_what_the_accelerator_cannot_take_is_answered_for_in_software(spark, device):
    left = spark.createDataFrame([(t, t % 5) for t in range(200)], "t int, x int")
    crowd = [(180, 2, 1 << 60)] * 70  # more than the cores hold, and a value of too many bits
    right = spark.createDataFrame([*((t, t % 3, t) for t in range(200)), *crowd],
                                  "t int, a int, v long")  # fmt: skip
    asked = {
        "band": {("x", "a"): (-1, 1)}, "time": "t", "within": 4, "partitions": 2,
        "aggregates": {"n": "count", "high": "max:v"},
    }  # fmt: skip
    answer = join_aggregate(left, right, **asked, device=device)
    assert rows_of(answer) == on_pairs((left, right), asked)
    tasks = metrics(answer).tasks
    assert [task.software_rows > 0 for task in tasks] == [False, True]
    assert tasks[1].handed_over.startswith("in software: Values of column 'v' from")
    strict = join_aggregate(left, right, **asked, device=device, strict=True)
    with pytest.raises(PySparkException) as caught:
        strict.collect()
    assert isinstance(task_error(caught.value), AcceleratorLimitError)
    assert "generate it with --value-bits 60" in str(task_error(caught.value))


def test_explain_tells_of_the_accelerator_and_the_order(frames, device):
    said = explain(join_aggregate(*frames, **ASKED, partitions=2, device=device))
    assert said.offloaded
    assert said.device == device
    assert "one word for each left row" in said.accelerator
    assert said.join.startswith("every left row once, with n = count(*), prices = count(price), ")
    assert said.ordering == "in each partition by left 't'"
    assert "exact" in str(said.terms[0])
    alone = explain(join_aggregate(*frames, **{**ASKED, "on": None}, partitions=1, device=device))
    assert alone.ordering == "by left 't', over all partitions"


def test_left_rows_come_in_the_order_of_their_times(frames, device):
    asked = {**ASKED, "on": None, "device": device, "partitions": 3}
    times = [row.t for row in join_aggregate(*frames, **asked).collect()]
    assert times == sorted(times)


def test_a_declared_order_is_checked(frames, device):
    asked = {**ASKED, "device": device, "sorted": True}
    with pytest.raises(PySparkException) as caught:
        join_aggregate(*frames, **asked).collect()
    assert isinstance(task_error(caught.value), OrderError)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"band": {("f", "g"): (-0.5, 0.5)}}, "must be compared once more by their rows"),
        ({"aggregates": {"s": "sum:g"}}, "Column 'g' holds floats, but the accelerator adds up"),
        ({"aggregates": {"s": "max:name"}}, "Values of type string in column 'name' are not"),
        ({"aggregates": {"s": "sum:d"}}, r"Values of type decimal128\(9, 2\) in column 'd' are"),
        (
            {"band": {("x", "a"): (-1, 1), ("p", "price"): (-1, 1)}},
            "needs 3 key fields, but the accelerator",
        ),
    ],
)
def test_what_it_cannot_do_is_done_from_pairs_and_says_why(frames, device, changes, reason):
    left, right = frames
    left = left.withColumn("f", F.col("x") * F.lit(0.25))
    right = right.withColumn("g", F.col("a") * F.lit(0.25)).withColumn(
        "d", F.lit(Decimal("1.25")).cast("decimal(9,2)")
    )
    asked = {**ASKED, **changes, "device": device}
    said = explain(join_aggregate(left, right, **asked))
    assert not said.offloaded
    assert len(said.causes) == 1
    assert said.device == "software:"
    with pytest.raises(AcceleratorLimitError, match=reason):
        join_aggregate(left, right, **asked, strict=True)


def test_what_would_be_without_effect_is_an_error(frames, device):
    with pytest.raises(AcceleratorLimitError, match="No controller chooses the cores of a join ag"):
        join_aggregate(*frames, **ASKED, elastic=True, device=device)


def test_mistakes_stay_mistakes(frames, device):
    asked = {**ASKED, "within": None, "rows": 64}
    with pytest.raises(CapacityError, match="64"):
        join_aggregate(*frames, **asked, device=device, strict=True)
    with pytest.raises(UsageError, match="trace has no meaning for a join aggregate"):
        plan_join_aggregate(*frames, **ASKED, device=device, trace=True)
    with pytest.raises(UsageError, match="use a bundle that was generated without --value-bits"):
        stream_join(*frames, on="k", time="t", within=3, device=device, strict=True)
    said = explain(stream_join(*frames, on="k", time="t", within=3, device=device))
    assert "is a join aggregate, which sends what the matches" in str(said.causes[0])
