# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the commands: quiet, local, with this very Python on both sides."""

from collections.abc import Mapping
import os
from pathlib import Path
import shutil
import sys

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from host import FailureError, UsageError
from host.errors import MissingToolError
from spark_offload.session.interrupts import kept_handler, no_orphan
from spark_offload.session.java_log import java_log, kept_java_log, start_java

__all__ = ["PROVIDER", "ROCKSDB", "open_session", "use_this_python"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""Option that names the store in which streaming queries keep their state."""

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
"""Option that lets a micro-batch write what it has changed, instead of all files of the store."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only store of Spark that keeps maps and timers by key, as streaming joins need it."""

LEAST_MEMORY, MOST_MEMORY = 1024, 4096
"""Megabytes of a local Spark: a quarter of the machine's, within these."""


def open_session(
    name: str, *, master: str = "local[*]", options: dict[str, str] | None = None
) -> SparkSession:
    """Return the running Spark session, or start one that needs nothing set by hand.

    The Python workers run the interpreter that runs this function, the web interface is off, and
    timestamps with a zone are shown in UTC. A local Spark has a quarter of the machine's memory,
    from 1 to 4 GB (or ``spark.driver.memory``, or the environment's ``SPARK_DRIVER_MEMORY``).
    Streaming queries keep their state in RocksDB, which streaming joins need, and write what a
    micro-batch has changed instead of whole files. What the Java process prints goes into a file,
    which is kept, and named by the error, if Spark fails.

    Parameters
    ----------
    name : str
        Application name.
    master : str
        Spark master, used when no session is running.
    options : dict of str to str, optional
        Further Spark options; they override those set here. A running session must have them.

    Raises
    ------
    MissingToolError
        If there is no Java.
    UsageError
        If a session is running in which an option has another value.
    FailureError
        If Spark does not start.
    """
    running = _running_session()
    if running is not None:
        _require_options(running, options or {})
        return running
    java = os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if shutil.which("java") is None and not os.access(java, os.X_OK):
        raise MissingToolError(
            "Java 17 or later", "by Spark", "install it (Debian: openjdk-17-jre-headless)"
        )
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        PROVIDER: ROCKSDB,
        CHANGELOG: "true",
        **(_local_settings() if master.startswith("local") else {}),
        **(options or {}),
    }
    conf = SparkConf(loadDefaults=False).setAppName(name).setMaster(master)
    conf.setAll(list(settings.items()))
    with no_orphan():
        try:
            gateway = start_java(conf)
            with kept_handler():
                SparkContext(conf=conf, gateway=gateway)
            session = SparkSession.builder.config(conf=conf).getOrCreate()
        except (PySparkException, Py4JError, OSError) as error:
            raise FailureError(_start_failure(error)) from error
    use_this_python(session.sparkContext)
    return session


def _local_settings() -> dict[str, str]:
    """Return what a Spark of this machine alone is set to.

    Its parts find one another whatever the machine is called in its network. Executors live in the
    Java process of the driver, so its memory, of which Spark takes 1 GB whatever there is, is that
    of all tasks; their Python processes need as much again. Tasks tell often how far they are.
    """
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.heartbeatInterval": "2s",
    }
    if "SPARK_DRIVER_MEMORY" not in os.environ:
        quarter = _memory_bytes() >> 22
        settings["spark.driver.memory"] = f"{min(max(quarter, LEAST_MEMORY), MOST_MEMORY)}m"
    return settings


def _memory_bytes() -> int:
    """Return the memory of this machine, or what a container has of it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # there is no such limit
        return memory


def _running_session() -> SparkSession | None:
    """Return the session of this thread, or that of the process."""
    active = SparkSession.getActiveSession()
    if active is not None or SparkContext._active_spark_context is None:
        return active
    return SparkSession.builder.getOrCreate()


def _require_options(session: SparkSession, options: Mapping[str, str]) -> None:
    for key, wanted in options.items():
        try:
            actual = session.conf.get(key)
        except PySparkException:
            actual = None
        if actual is None or actual.lower() != wanted.lower():
            value = "is not set" if actual is None else f"is {actual!r}"
            raise UsageError(
                f"Spark is running already, and its option {key} {value}, not {wanted!r} as asked "
                f"for; stop that session first (`spark.stop()`), set the option there "
                f"(`spark.conf.set`) if Spark allows it, or ask for no other value."
            )


def _start_failure(error: Exception) -> str:
    """Say why Spark did not start, and where to read what Java has printed."""
    if isinstance(error, Py4JJavaError):
        reason = str(error.java_exception)
    else:
        log = java_log()
        said = [] if log is None else log.lines
        # The line of an exception says more than the usage that Spark may print behind it.
        named = [line for line in said if "Exception" in line or "Error" in line]
        reason = (named or said or [str(error).strip()])[-1]
    path = kept_java_log()
    printed = "" if path is None else f" All that Java has printed is in {path}."
    return f"Spark did not start: {reason.rstrip('.')}.{printed}"


def use_this_python(context: SparkContext) -> None:
    """Let the workers of a local Spark run the interpreter of this process.

    Unless someone chose another by ``PYSPARK_PYTHON``, Spark takes the ``python3`` that it finds on
    PATH, which lacks PyArrow whenever this process runs from an environment that is not activated.
    """
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
