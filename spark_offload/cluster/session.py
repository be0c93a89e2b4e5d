# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the commands, its log, its interrupts and its progress."""

import atexit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
import hashlib
import logging
import os
from pathlib import Path
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from types import FrameType
from typing import Any, cast
import warnings

from py4j.protocol import Py4JError, Py4JJavaError
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from host import FailureError, UsageError
from host.cli.command import Status
from host.devices.bundles import cache_folder, prepare_folder
from host.errors import MissingToolError
from host.files.atomic import atomic_file

__all__ = [
    "JavaLog",
    "PROVIDER",
    "ROCKSDB",
    "java_log",
    "kept_java_log",
    "open_session",
    "quick_interrupts",
    "quick_python",
    "running_stages",
    "show_progress",
    "stop_session",
    "tuples_writer",
    "use_this_python",
]

# Interrupts from the keyboard while Spark starts or works: one line, and nothing stays behind.

#: Seconds for Spark to stop; its Java process ends with this one in any case.
STOP_SECONDS = 10


@contextmanager
def _no_orphan() -> Iterator[None]:
    """End the Java process that the body was about to start, if it is interrupted.

    A Java process that is not yet connected to Python never finds out that nobody wants it any
    more: it would stay for ever. PySpark keeps hold of it in the function that starts it.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        for frame, _ in traceback.walk_tb(interrupt.__traceback__):
            process = frame.f_locals.get("proc")
            if isinstance(process, subprocess.Popen) and process.poll() is None:
                process.kill()
                process.wait(STOP_SECONDS)
        raise


@contextmanager
def quick_interrupts() -> Iterator[None]:
    """Let an interrupt end the body of a command, without stack traces of the libraries in it.

    Py4J logs the stack of every call to Java that is interrupted, so nothing is logged from the
    interrupt on. A process that ignores interrupts, as a job in the background does, goes on.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or not _is_main_thread():
        yield
        return
    disabled = logging.root.manager.disable

    def interrupt(number: int, frame: FrameType | None) -> None:
        logging.disable()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(disabled)


@contextmanager
def _kept_handler() -> Iterator[None]:
    """Keep the program's own handler of interrupts although the body makes a Spark context.

    PySpark puts its own in the place of any other one. That one asks Java to cancel all jobs, over
    the connection on which the program waits for an answer, which fails with two stack traces. It
    stays only where the program had nothing but Python's default.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if _is_main_thread() and before not in (signal.default_int_handler, None):
            signal.signal(signal.SIGINT, before)


def _is_main_thread() -> bool:
    """Whether this thread is the one that may set handlers of signals."""
    return threading.current_thread() is threading.main_thread()


def stop_session(session: SparkSession) -> None:
    """Stop a session whose work was interrupted; further interrupts are of no use meanwhile."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # In a thread of its own, which has its own connection to Java: this one's may be waiting
        # for an answer.
        stopper = threading.Thread(
            target=_stop_quietly, args=(session,), name="splitjoin-stop", daemon=True
        )
        stopper.start()
        stopper.join(STOP_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)


def _stop_quietly(session: SparkSession) -> None:
    """Stop a session without PySpark's warning that Java ended first.

    Where stopping takes longer than ``STOP_SECONDS``, this process ends and takes Java with it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        session.stop()


# What the Java process behind a Spark session prints, kept in a file for when it is needed.
#
# Its log lines and warnings come from several places, some of them before any setting is read.
# Most errors reach Python as exceptions, and nobody wants to read the rest; but a process that
# does not start, or dies, says why nowhere else.


@dataclass(eq=False)
class JavaLog:
    """The file that a Java process writes its standard error to.

    It goes with this process, unless Java has died or somebody was told to read it.

    Parameters
    ----------
    path : Path
        Where it is.
    """

    path: Path

    def __post_init__(self) -> None:
        self.gateway: Any = None
        self._kept = False

    @property
    def lines(self) -> list[str]:
        """What stands there, without empty lines and the frames of stack traces."""
        try:
            text = self.path.read_text(errors="replace")
        except OSError:
            return []
        lines = (line.strip() for line in text.splitlines())
        return [line for line in lines if line and not line.startswith(("at ", "... "))]

    def keep(self) -> Path:
        """Let the file outlive this process; return its path."""
        self._kept = True
        return self.path

    def forget(self) -> None:
        """Remove the file, unless somebody may want to read it."""
        process = getattr(self.gateway, "proc", None)
        died = process is not None and process.poll() not in (None, 0)
        if not (self._kept or died):
            self.path.unlink(missing_ok=True)


_logs: list[JavaLog] = []
"""The log of the Java process that this process has started, if it has."""


def java_log() -> JavaLog | None:
    """Return the log of the Java process; None if :func:`_start_java` has not started it."""
    return _logs[-1] if _logs else None


def kept_java_log() -> Path | None:
    """Return the file with what Java has printed, which is kept from now on, for a message.

    None if it has printed nothing.
    """
    log = java_log()
    return log.keep() if log is not None and log.lines else None


def _start_java(conf: SparkConf) -> Any:
    """Start Java for a Spark context, unless it runs; return PySpark's gateway to it."""
    if SparkContext._gateway is not None:
        return SparkContext._gateway
    descriptor, name = tempfile.mkstemp(prefix="splitjoin-spark-", suffix=".log")
    _logs.append(log := JavaLog(Path(name)))
    atexit.register(log.forget)
    try:
        log.gateway = cast(Any, launch_gateway)(conf, {"stderr": descriptor})
    finally:
        os.close(descriptor)
    return log.gateway


# The Spark session of the commands: quiet, local, with this very Python on both sides.

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
    with _no_orphan():
        try:
            gateway = _start_java(conf)
            with _kept_handler():
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
        context.pythonExec = quick_python()


#: Starts Python without the archives that Spark puts first in its path.
_LAUNCHER = """#!/bin/sh
PYTHONPATH=${{PYTHONPATH#*/pyspark.zip:*/py4j-*-src.zip:}}
export PYTHONPATH
exec {python} "$@"
"""


@cache
def quick_python() -> str:
    """Return a program that runs the interpreter of this process, for workers.

    Spark lets its workers find PySpark in an archive of sources first, which each process compiles
    anew: half a second of processor time, where the installed package takes a tenth. That counts
    for the first process of every streaming query, which Spark waits ten seconds for, whatever is
    set. If the session's PySpark is another one, the program is the interpreter itself.
    """
    package = Path(pyspark.__file__).parent
    home = Path(os.environ.get("SPARK_HOME", package))
    if not (home.is_dir() and home.samefile(package)):
        return sys.executable
    text = _LAUNCHER.format(python=shlex.quote(sys.executable))
    try:
        folder = prepare_folder(cache_folder() / "launchers")
        program = folder / hashlib.sha256(text.encode()).hexdigest()[:32]
        if not program.exists():
            with atomic_file(program, mode=0o755) as partial:
                partial.write_text(text, encoding="utf-8")
    except (FailureError, OSError):
        return sys.executable
    # Files of some folders cannot be run.
    return str(program) if os.access(program, os.X_OK) else sys.executable


# How far a local Spark has come: tasks of its stages, and rows told through small files.


def tuples_writer(folder: str | None, partition: int) -> Callable[[int], None]:
    """Return the progress reporter of a task: it notes the tuples sent to the device."""

    def tell(tuples: int) -> None:
        if folder is None:
            return
        # Nobody may care any more, or the driver may be on another machine.
        if Path(folder).is_dir():
            Path(folder, str(partition)).write_text(str(tuples))

    return tell


@contextmanager
def show_progress(status: Status, spark: SparkSession) -> Iterator[str]:
    """Show what Spark does for a join while the body runs; yield the folder that tasks write to.

    Parameters
    ----------
    status : Status
        Where to show it.
    spark : SparkSession
        Whose tasks to count.
    """
    told: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="splitjoin-progress-") as folder:

        def count() -> str:
            for path in Path(folder).iterdir():
                text = path.read_text()  # empty while it is being written
                told[path.name] = int(text) if text.isdigit() else told.get(path.name, 0)
            rows = sum(told.values())
            parts = [f"{rows:,} rows joined" if rows else "", running_stages(spark)]
            return ", ".join(part for part in parts if part)

        with status.stage("joining in Spark", count):
            yield folder


def running_stages(spark: SparkSession) -> str:
    """Say how far the stages that run are: of reading, shuffling, joining, writing.

    Executors tell of the rows of unfinished tasks with every heartbeat, so the numbers move within
    the first task.
    """
    try:
        active = spark._jsc.sc().statusStore().activeStages()
        stages = [active.apply(index) for index in range(active.size())]
        return ", ".join(
            f"stage {stage.stageId()}: {stage.numCompleteTasks()} of {stage.numTasks()} tasks"
            + _rows_read(int(stage.inputRecords()) + int(stage.shuffleReadRecords()))
            for stage in sorted(stages, key=lambda stage: int(stage.stageId()))
        )
    except (Py4JError, OSError, AttributeError):
        return ""  # Spark is being stopped


def _rows_read(rows: int) -> str:
    return f" and {rows:,} rows" if rows else ""
