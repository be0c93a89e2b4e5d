# SPDX-License-Identifier: Apache-2.0
"""The device of a join that names none: what its surroundings name, else the software engine."""

from types import SimpleNamespace

import pytest

from host.devices import bundles
from spark_offload import explain, plan_join, stream_join
from spark_offload.cluster.machines import DEVICE, named_devices

ASKED = {"on": "id", "time": "t", "within": 2, "partitions": 1}


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    """No variable names a device, and no bundle may be built or looked for."""

    def refuse(*arguments, **options):
        raise AssertionError("a bundle was looked for")

    monkeypatch.delenv("SPLITJOIN_DEVICE", raising=False)
    monkeypatch.setattr(bundles, "default_bundle", refuse)


@pytest.fixture
def frame(spark):
    return spark.range(20).selectExpr("id", "id as t")


@pytest.fixture
def setting(spark):
    """Sets the session's option, which is gone after the test."""
    yield lambda value: spark.conf.set(DEVICE, value)
    spark.conf.unset(DEVICE)


def session(**conf):
    names = {name.replace("_", "."): value for name, value in conf.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: names.get(name)))


def test_it_is_the_software_engine_where_nothing_is_named(frame):
    joined = stream_join(frame, frame, **ASKED)
    said = explain(joined)
    assert said.device == "software:"
    assert said.chosen.startswith("no accelerator is named, and the software engine")
    assert joined.count() == 20


def test_the_explanation_tells_what_the_accelerator_would_take(frame, monkeypatch):
    known = "spark_offload.plan.join.known_accelerator"
    monkeypatch.setattr(known, lambda query: None)
    assert explain(stream_join(frame, frame, **ASKED), count=True).cost.cycles is None
    other = plan_join(frame, frame, **ASKED).manifest
    monkeypatch.setattr(known, lambda query: other)
    cost = explain(stream_join(frame, frame, **ASKED), count=True).cost
    assert cost.cycles >= 20
    assert str(cost).startswith("on the accelerator (device='sim:') at least ")


def test_the_session_names_a_device_or_a_pool(frame, setting, software_bundle):
    setting(software_bundle)
    assert explain(stream_join(frame, frame, **ASKED)).chosen.startswith(f"named by {DEVICE}")
    asked = explain(stream_join(frame, frame, device="software:", **ASKED))
    assert (asked.device, asked.chosen.partition(";")[0]) == ("software:", "as asked for")
    assert named_devices(session(spark_splitjoin_device="a.b:0, a.b:1")) == (
        ["a.b:0", "a.b:1"], f"named by {DEVICE}",
    )  # fmt: skip


def test_a_variable_of_the_driver_names_a_device(frame, monkeypatch, software_bundle):
    monkeypatch.setenv("SPLITJOIN_DEVICE", software_bundle)
    said = explain(stream_join(frame, frame, **ASKED))
    assert said.device == software_bundle
    assert said.chosen.startswith("named by SPLITJOIN_DEVICE;")


def test_the_resource_that_spark_assigns_is_taken_unless_something_else_is_named(monkeypatch):
    assigned = session(spark_task_resource_splitjoin_amount="1")
    devices, cause = named_devices(assigned)
    assert devices == "resource:splitjoin"
    assert cause == "Spark assigns the resource 'splitjoin' to tasks"
    assert named_devices(session(spark_task_resource_gpu_amount="1")) == (None, "")
    monkeypatch.setenv("SPLITJOIN_DEVICE", "software:")
    assert named_devices(assigned) == (None, "")
