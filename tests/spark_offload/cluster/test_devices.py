# SPDX-License-Identifier: Apache-2.0
"""Where tasks get their devices from, and what happens when these fail."""

from dataclasses import replace
from datetime import timedelta
import re

from pyspark.errors import PySparkException
import pytest

from host import UsageError
from host.errors import DeviceError, DeviceTimeoutError
from spark_offload import explain, metrics, stream_join, task_error
from spark_offload.cluster.machines import WAIT, device_source, take_device
from tests.spark_offload.device_sources import made_by_task, pool
from tests.spark_offload.faulty import address
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.stream_model import Cluster, cut, new_pairs, stream_task
from tests.spark_offload.test_join import collected, frames, random_rows

LEFT, RIGHT = random_rows(1, 300), random_rows(2, 300)


def answer(spark, device, *, partitions=2):
    """Return the frame of a join that gives each of two partitions more words than are needed."""
    return stream_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        time="t",
        within=4,
        device=device,
        partitions=partitions,
    )


def expected():
    return sorted(join_rows(LEFT, RIGHT, lambda l, r: l["k"] == r["k"], time="t", within=4))


@pytest.fixture
def options(spark):
    """Options of the session, taken back afterwards."""
    yield spark.conf
    spark.conf.unset(WAIT)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ([], ["list", "[]"]),
        ([3], ["list", "[3]"]),
        (7, ["sim:BUNDLE", "7"]),
        (["software:", "software:"], ["'software:'", "twice"]),
        (["software:", "resource:card"], ["'resource:card'", "alone"]),
        (["software:", "fpga:1"], ["fpga"]),
        ("resource:", ["resource", "name"]),
        ("resource:card", ["spark.task.resource.card.amount", "docs/spark-cluster.md"]),
    ],
)
def test_a_wrong_device_is_named_before_anything_runs(spark, device, words):
    with pytest.raises(UsageError) as caught:
        device_source(device, spark)
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)


@pytest.mark.parametrize("wait", ["soon", "-3s"])
def test_a_wrong_time_to_wait_names_the_option(spark, options, wait):
    options.set(WAIT, wait)
    with pytest.raises(UsageError, match=rf"spark\.splitjoin\.device\.wait.*'{wait}'"):
        device_source(["software:"], spark)


def test_devices_of_a_pool_must_be_alike(spark, software_bundle):
    with pytest.raises(UsageError, match="'software:' and 'software:/.*different accelerators"):
        answer(spark, ["software:", software_bundle])


def test_tasks_take_turns_with_the_one_device_of_a_machine(spark, tmp_path):
    card = address("sound", tmp_path / "card")
    joined = answer(spark, card, partitions=4)
    assert "every machine has one; tasks of a machine take turns, each waits up to 10min" in (
        explain(joined).chosen
    )
    assert sorted(collected(joined)) == expected()
    assert [task.device for task in metrics(joined).tasks] == [card] * 4
    # The survey of the device, and the four tasks; the device itself refuses to be opened twice.
    assert len((tmp_path / "card.log").read_text().split()) == 5


def test_a_device_that_hangs_fails_its_task_and_is_avoided_from_then_on(spark, tmp_path):
    bad, good = address("hangs", tmp_path / "bad"), address("sound", tmp_path / "good")
    joined = answer(spark, [bad, good], partitions=1)
    assert "every machine has 2; tasks of a machine take turns" in explain(joined).chosen
    with pytest.raises(PySparkException) as caught:
        joined.collect()
    error = task_error(caught.value)
    assert isinstance(error, DeviceTimeoutError)
    for part in (
        f"Device '{bad}' made no progress within {1 << 40} cycles; its counters: ",
        ", tuples_r ",
        "(In Spark partition 0.)",
    ):
        assert part in str(error), str(error)
    # Another frame, as Spark would only repeat the error of this one.
    again = answer(spark, [bad, good], partitions=1)
    assert sorted(collected(again)) == expected()
    assert metrics(again).tasks[0].device == good


def test_a_task_that_waits_in_vain_says_for_what(spark, tmp_path, options):
    options.set(WAIT, "50ms")
    card = address("sound", tmp_path / "card")
    with take_device(pool(card)), pytest.raises(DeviceError) as caught:
        answer(spark, card)
    assert f"Device '{card}' did not become free within 0.05 s; '{card}' is held by process " in (
        str(caught.value)
    )
    assert "(partition 0 of a Spark job, attempt 0) since " in str(caught.value)
    assert WAIT in str(caught.value)


@pytest.mark.long
def test_the_code_about_devices_on_the_page_runs(options, root):
    page = root / "docs" / "spark-cluster.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "sc://" not in block]
    exec(compile(block, str(page), "exec"), {})


def fail(source, error):
    with pytest.raises(type(error)) as caught, take_device(source):
        raise error
    return str(caught.value)


def test_an_error_of_a_device_gets_its_name_and_counters(tmp_path):
    message = fail(made_by_task("software:"), DeviceError("The link is down."))
    assert message.startswith("The link is down. (Device 'software:'; its counters: ")
    assert "tuples_s 0" in message


def test_only_errors_of_the_device_make_others_preferred(tmp_path):
    first, second = address("sound", tmp_path / "1"), address("sound", tmp_path / "2")
    source = pool(first, second)
    fail(source, UsageError("The rows are wrong."))
    with take_device(source) as taken:
        assert taken.name == first
    fail(source, DeviceError("The link is down."))
    with take_device(source) as taken:
        assert taken.name == second


def test_a_device_that_does_not_open_is_one_that_failed(tmp_path):
    absent, sound = address("absent", tmp_path / "1"), address("sound", tmp_path / "2")
    with pytest.raises(DeviceError, match="did not open: no such card"):
        take_device(pool(absent, sound))
    with take_device(pool(absent, sound)) as taken:
        assert taken.name == sound


@pytest.mark.long
def test_a_group_of_a_stream_gets_another_device_when_it_runs_again(tmp_path):
    bad, good = address("hangs", tmp_path / "bad"), address("sound", tmp_path / "good")
    source = pool(bad, good)
    task = replace(stream_task(equal=True, groups=1, within=timedelta(seconds=3)), devices=source)
    batches = cut(3, rows=300, batches=2)
    cluster = Cluster(task, timedelta(seconds=60))
    with pytest.raises(DeviceTimeoutError, match=r"hangs@.*\(In Spark partition 0\.\)"):
        cluster.run(*batches[0])
    for batch in batches:
        cluster.run(*batch)
        # The task of a micro-batch has let go of it.
        with take_device(source) as taken:
            assert taken.name == good
    assert sorted(cluster.pairs) == new_pairs(task, batches)
