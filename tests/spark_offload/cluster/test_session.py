# SPDX-License-Identifier: Apache-2.0
"""A session that runs already is what was asked for, and what Java prints is kept."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pyarrow as pa
import pyspark
import pytest

from host import UsageError
from spark_offload.cluster import session
from spark_offload.cluster.machines import cluster_of
from spark_offload.cluster.session import open_session, quick_python

STARTS = """
import os, sys
from host import FailureError
from spark_offload.cluster.session import java_log
from spark_offload.cluster.session import open_session

try:
    options = {"spark.driver.extraJavaOptions": "-Xmx1g"}
    open_session("refused", master="local[1]", options=options)
except FailureError as error:
    print(error)
spark = open_session("started", master="local[1]", options={"spark.sql.shuffle.partitions": "3"})
print(spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.appName)
print(java_log().path)
conf = spark.sparkContext.getConf()
print(*(conf.get(f"spark.driver.{name}") for name in ("bindAddress", "host", "memory")))
os.write(2, b"from another thread")
"""


def test_a_running_session_is_returned_if_its_options_are_those_asked_for(spark):
    options = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "False"}
    assert open_session("again", options=options) is spark
    found = []
    thread = threading.Thread(target=lambda: found.append(open_session("in another thread")))
    thread.start()
    thread.join(60)
    assert found[0].sparkContext is spark.sparkContext


def test_workers_find_the_installed_pyspark_before_its_archive(spark):
    """Of the archive's sources, each of the first processes would compile what it imports."""

    def places(batches):
        for _ in batches:
            yield pa.record_batch({"path": [pyspark.__file__, sys.executable, *sys.path]})

    cluster_of(spark)
    found = [row.path for row in spark.range(1).mapInArrow(places, "path string").collect()]
    assert found[:2] == [pyspark.__file__, sys.executable]
    assert not any(path.endswith("pyspark.zip") for path in found)


def test_another_spark_has_its_own_pyspark(tmp_path, monkeypatch):
    for home in (tmp_path, tmp_path / "missing"):
        monkeypatch.setenv("SPARK_HOME", str(home))
        assert quick_python.__wrapped__() == sys.executable


def test_an_interpreter_of_any_name_is_started(tmp_path, monkeypatch):
    odd = tmp_path / "a b'c$d"
    odd.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(odd))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    program = quick_python.__wrapped__()
    assert program != str(odd)
    lib, told = (
        "/spark/python/lib",
        "import os, sys; print(os.environ['PYTHONPATH'], *sys.argv[1:])",
    )
    for path, kept in (
        (f"{lib}/pyspark.zip:{lib}/py4j-0.10.9.9-src.zip:/jars:/mine", "/jars:/mine"),
        ("/mine:/other", "/mine:/other"),
        ("", ""),
    ):
        done = subprocess.run(
            [program, "-c", told, "x y"],
            env={"PYTHONPATH": path}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"{kept} x y\n"


def test_an_option_that_the_running_session_has_not_got_is_an_error(spark):
    with pytest.raises(
        UsageError,
        match=r"shuffle\.partitions is '2', not '7' as asked for; stop that session first",
    ):
        open_session("other", options={"spark.sql.shuffle.partitions": "7"})
    with pytest.raises(UsageError, match=r"spark\.not\.there is not set, not 'x'"):
        open_session("other", options={"spark.not.there": "x"})
    # One that has its value from Spark itself is as good as set.
    open_session(
        "same", options={"spark.sql.ansi.enabled": spark.conf.get("spark.sql.ansi.enabled")}
    )


@pytest.mark.long
def test_what_java_prints_is_named_by_the_error_and_goes_when_all_went_well(tmp_path, root):
    """One start that fails, then one that does not; other output of the process is its own."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS],
        cwd=root, env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    refused, started, path, settings = done.stdout.splitlines()
    assert done.stderr == "from another thread"
    (kept,) = tmp_path.glob("splitjoin-spark-*.log")
    assert refused.startswith("Spark did not start: ")
    assert refused.endswith(f"All that Java has printed is in {kept}.")
    assert "Not allowed to specify max heap" in refused
    assert "Not allowed to specify max heap" in kept.read_text()
    assert started == "3 started"
    assert path != str(kept)
    address, host, memory = settings.split()
    assert (address, host) == ("127.0.0.1", "127.0.0.1"), "whatever the machine is called"
    assert 1024 <= int(memory.removesuffix("m")) <= 4096


@pytest.mark.parametrize(("status", "kept"), [(None, False), (0, False), (134, True)])
def test_the_log_of_a_java_process_that_died_is_kept(tmp_path, status, kept):
    log = session.JavaLog(tmp_path / "java.log")
    log.path.touch()
    log.gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: status))
    log.forget()
    assert log.path.exists() is kept
