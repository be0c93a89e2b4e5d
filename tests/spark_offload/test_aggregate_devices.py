# SPDX-License-Identifier: Apache-2.0
"""Aggregations of frames on accelerators: what they cannot do is named, and the rest is right."""

import random

from pyspark.errors import PySparkException
import pytest

import hdl.bundle
from hdl.bundle import write_bundle
from host.errors import (
    AcceleratorLimitError,
    ManifestError,
    MissingToolError,
    UnsupportedTypeError,
    UsageError,
)
import host.operators.aggregate
from spark_offload import (
    explain,
    metrics,
    stream_aggregate,
    stream_aggregate_metrics,
    task_error,
    verify,
)
from tests.hdl.aggregate.operators import aggregate_parameters
from tests.host.operators.small_aggregate import OPERATOR, PARAMETERS
from tests.spark_offload.stream_folders import random_batch, row

ASKED = {
    "time": "t",
    "window": "12s",
    "advance": "4s",
    "on": ["k"],
    "aggregates": {
        "n": "count",
        "total": "sum:y",
        "low": "min:y",
        "mean": "mean:y",
        "ys": "count:y",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle that is described, but not built."""
    folder = tmp_path_factory.mktemp("aggregate") / "bundle"
    write_bundle(PARAMETERS, folder)
    return folder


@pytest.fixture(scope="module")
def device(bundle):
    """The address of an accelerator with room for 13 keys and windows of 6 panes."""
    library = pytest.importorskip("sim.verilated.library")
    try:
        library.build_library(bundle)
    except MissingToolError as error:
        pytest.skip(str(error))
    return f"sim:{bundle}"


def small(frame):
    return frame.selectExpr("t", "k", "cast(x % 7 as int) as y", "cast(t as double) as w", "tag")


@pytest.fixture
def generated(bundle, monkeypatch):
    """Let ``sim:`` find the small bundle; return the operators that are asked for."""
    documents = []

    def bundle_of(document):
        documents.append(document)
        return bundle

    monkeypatch.setattr(host.operators.aggregate, "operator_bundle", bundle_of)
    return documents


@pytest.mark.parametrize("named", [False, True])
def test_the_plan_tells_of_the_accelerator(folders, bundle, generated, named):
    device = f"sim:{bundle}" if named else "sim:"
    for frame in (small(folders.batch("left")), small(folders.stream("left"))):
        said = str(explain(stream_aggregate(frame, device=device, **ASKED)))
        assert f"sim:{bundle}: 3 cores with room for 13 keys and windows of 6 panes" in said
    # Batch frames need windows of three panes; of streams, panes are all that is computed.
    assert [document["size"] for document in generated] == [] if named else [3, 1]


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"aggregates": {"w": "sum:w"}}, AcceleratorLimitError, "'w' has floats"),
        ({"aggregates": {"a": "max:y", "b": "max:n"}}, AcceleratorLimitError, "max.n."),
        ({"device": "software:"}, UsageError, "cannot aggregate, as only 'sim:BUNDLE' can"),
        ({"device": "sim:", "aggregates": {"w": "sum:w"}}, AcceleratorLimitError, "has floats"),
        ({"aggregates": {"last": "max:k"}}, UnsupportedTypeError, "'k'"),
    ],
)
def test_what_an_accelerator_cannot_do_is_named_before_anything_runs(
    folders, bundle, change, kind, said
):
    for frame in (small(folders.batch("left")), small(folders.stream("left"))):
        frame = frame.selectExpr("*", "y as n")
        with pytest.raises(kind, match=said):
            stream_aggregate(frame, **{**ASKED, "device": f"sim:{bundle}", **change})


def test_a_window_of_too_many_panes_is_an_error_but_for_streams_that_need_only_panes(
    folders, bundle
):
    asked = {**ASKED, "window": "40s", "device": f"sim:{bundle}"}
    with pytest.raises(AcceleratorLimitError, match="have 10 panes, but those of the acc"):
        stream_aggregate(small(folders.batch("left")), **asked)
    assert stream_aggregate(small(folders.stream("left")), **asked).isStreaming


def test_an_operator_with_having_is_refused(folders, tmp_path, monkeypatch):
    described = OPERATOR.with_(having="total > 3")
    monkeypatch.setattr(hdl.bundle, "generate", lambda parameters: ("", "{}"))  # nobody reads it
    write_bundle(aggregate_parameters(described, cores=3, keys=13, panes=6), tmp_path / "some")
    for frame in (small(folders.batch("left")), small(folders.stream("left"))):
        with pytest.raises(AcceleratorLimitError, match="'small' of the accelerator has `having`"):
            stream_aggregate(frame, device=f"sim:{tmp_path / 'some'}", **ASKED)


def test_the_bundle_of_a_join_is_refused(folders, software_bundle):
    device = software_bundle.replace("software:", "sim:")
    with pytest.raises(ManifestError, match="this kit reads 6 here"):
        stream_aggregate(small(folders.batch("left")), device=device, **ASKED)


@pytest.mark.long
def test_batch_frames_have_the_answer_of_spark(folders, device, generated):
    rng = random.Random(3)
    folders.drop([row for number in range(4) for row in random_batch(rng, number, 100)], [])
    frame = small(folders.batch("left"))
    for keys, partitions in ((["k"], 2), ([], None)):
        asked = {**ASKED, "on": keys, "partitions": partitions}
        answer = stream_aggregate(frame, device="sim:" if keys else device, **asked)
        assert verify(answer).rows > 10
        tasks = metrics(answer).tasks
        assert sum(task.left_rows for task in tasks) == 400
        assert all(task.cycles > 0 for task in tasks if task.left_rows)
        assert {task.device for task in tasks} == {device}
    many = frame.selectExpr("*", "tag[0].id as id")
    crowded = stream_aggregate(many, device=device, **{**ASKED, "on": "id"})
    assert "for what it has no room, the host goes on" in str(explain(crowded))
    assert verify(crowded).rows > 100
    assert "on the host: The input has at least" in str(metrics(crowded))
    crowded = stream_aggregate(many, device=device, strict=True, **{**ASKED, "on": "id"})
    with pytest.raises(PySparkException) as caught:
        crowded.collect()
    error = task_error(caught.value)
    assert isinstance(error, AcceleratorLimitError)
    assert "distinct keys, but the accelerator has room for 13" in str(error)


@pytest.mark.long
def test_streams_have_the_answer_of_spark(folders, device, generated):
    rng = random.Random(4)
    for number in range(3):
        folders.drop(random_batch(rng, number), [])
    folders.drop([row(5), row(1000)], [])
    answer = stream_aggregate(small(folders.stream("left")), device="sim:", **ASKED)
    assert verify(answer).rows > 20
    assert generated
    measured = stream_aggregate_metrics(folders.run(answer))
    assert all(batch.cycles > 0 and batch.device_seconds > 0 for batch in measured if batch.rows)
