# SPDX-License-Identifier: Apache-2.0
import logging

import pytest

from host import FailureError, UsageError
from host.errors import AcceleratorLimitError
from spark_offload import explain, metrics, plan_join, stream_join, verify
from tests.host.tables import bundle
from tests.spark_offload.test_join import LEFT, RIGHT, collected, frames

REAL = "t bigint, x double"


@pytest.fixture
def real(spark):
    return (
        spark.createDataFrame([(1, 0.5), (2, 1.75), (3, None)], REAL),
        spark.createDataFrame([(1, 0.25), (2, 3.0), (9, 0.5)], REAL),
    )


@pytest.fixture(scope="module")
def equality(tmp_path_factory):
    """The address of a device that compares for equality only."""
    equality = {"comparator": "equality", "timestamp_bits": 16}
    return f"software:{bundle(tmp_path_factory.mktemp('equality'), **equality)}"


def test_what_an_accelerator_cannot_serve_the_software_engine_does_and_says_so(
    real, equality, caplog, capsys
):
    with caplog.at_level(logging.WARNING, "spark_offload"):
        joined = stream_join(*real, band={"x": (0, 1)}, time="t", within=5, device=equality)
    assert "compares for equality only" in caplog.text
    assert sorted(collected(joined)) == [(1, 0.5, 1, 0.25)]
    explanation = explain(joined)
    assert explanation.device == "software:"
    assert not explanation.offloaded
    assert "strict=True raises this" in explanation.chosen
    assert "compares for equality only" in capsys.readouterr().out
    assert metrics(joined).total("results") == 1


def test_strict_raises_instead(real, equality):
    with pytest.raises(AcceleratorLimitError, match="equality only"):
        stream_join(*real, band={"x": (0, 1)}, time="t", within=5, device=equality, strict=True)


def test_too_many_terms_are_refused_unless_they_are_conditions(spark):
    left, right = frames(spark, LEFT, RIGHT)
    arguments = {
        "band": [("x", "x", -1, 1), ("k", "k", -1, 1), ("t", "x", -9, 9), ("k", "x", -5, 5)],
        "time": "t",
        "within": 5,
    }
    joined = stream_join(left, right, device="software:", **arguments)
    assert explain(joined).offloaded
    arguments["band"].append(("x", "k", -5, 5))
    with pytest.raises(
        AcceleratorLimitError, match=r"needs 5 key fields.*or write some of them in where"
    ):
        stream_join(left, right, device="software:", **arguments)
    del arguments["band"][-1]
    where = "l.x - r.k >= -5 and l.x - r.k <= 5"
    assert explain(stream_join(left, right, device="software:", **arguments, where=where)).offloaded


@pytest.mark.long
def test_a_count_window_is_joined_in_software_too(real, equality):
    joined = stream_join(*real, band={"x": (0, 1)}, time="t", rows=5, device=equality)
    assert sorted(collected(joined)) == [(1, 0.5, 1, 0.25), (1, 0.5, 9, 0.5)]


def test_mistakes_stay_mistakes(real):
    with pytest.raises(UsageError, match="'z'"):
        stream_join(*real, band={"z": (0, 1)}, time="t", within=5, device="software:")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"partitions": 0}, "partitions must be"),
        ({"partition_by": "key"}, "partition_by='key' is not possible"),
        ({"time": "x"}, "'left.x' has type double"),
    ],
)
def test_mistakes_stay_mistakes_where_no_device_serves(real, equality, change, words):
    given = {"band": {"x": (0, 1)}, "time": "t", "within": 5, "device": equality} | change
    with pytest.raises(UsageError, match=words):
        stream_join(*real, **given)


@pytest.mark.parametrize("share", [0.5, pytest.param(1.0, marks=pytest.mark.long)])
def test_an_answer_is_verified(spark, share):
    left, right = frames(spark, LEFT, RIGHT)
    joined = stream_join(left, right, band={"x": (-2, 3)}, time="t", within=10, device="software:")
    found = verify(joined, share=share)
    assert found.agrees
    assert 0 < found.rows <= joined.count()
    assert (found.rows == joined.count()) == (share == 1)
    assert "agree with Spark's own join" in str(found)


def test_a_wrong_answer_is_noticed(spark):
    left, right = frames(spark, LEFT, RIGHT)
    asked = {"time": "t", "within": 10, "device": "software:"}
    plan = plan_join(left, right, band={"x": (-2, 3)}, **asked)
    wider = stream_join(left, right, band={"x": (-2, 4)}, **asked)  # as if a device had erred
    with pytest.raises(FailureError, match=r"0 are missing and \d+ are in excess"):
        plan.verify(answer=wider)
    assert plan.verify(answer=wider, raises=False).extra > 0
    with pytest.raises(UsageError, match="share must be above 0"):
        plan.verify(share=0)
