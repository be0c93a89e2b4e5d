# SPDX-License-Identifier: Apache-2.0
"""What the Java process behind a Spark session prints, kept in a file for when it is needed.

Its log lines and warnings come from several places, some of them before any setting is read. Most
errors reach Python as exceptions, and nobody wants to read the rest; but a process that does not
start, or dies, says why nowhere else.
"""

import atexit
import os
from pathlib import Path
import tempfile
from typing import Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

__all__ = ["JavaLog", "java_log", "kept_java_log", "start_java"]


class JavaLog:
    """The file that a Java process writes its standard error to.

    It goes with this process, unless Java has died or somebody was told to read it.

    Attributes
    ----------
    path : Path
        Where it is.
    """

    def __init__(self) -> None:
        descriptor, name = tempfile.mkstemp(prefix="splitjoin-spark-", suffix=".log")
        self.path = Path(name)
        self._descriptor: int | None = descriptor
        self._gateway: Any = None
        self._kept = False

    def start(self, conf: SparkConf) -> Any:
        """Start Java with this file as its standard error; return PySpark's gateway to it."""
        descriptor, self._descriptor = self._descriptor, None
        assert descriptor is not None
        atexit.register(self._forget)
        try:
            self._gateway = cast(Any, launch_gateway)(conf, {"stderr": descriptor})
        finally:
            os.close(descriptor)
        return self._gateway

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

    def _forget(self) -> None:
        process = getattr(self._gateway, "proc", None)
        died = process is not None and process.poll() not in (None, 0)
        if not (self._kept or died):
            self.path.unlink(missing_ok=True)


_logs: list[JavaLog] = []
"""The log of the Java process that this process has started, if it has."""


def java_log() -> JavaLog | None:
    """Return the log of the Java process; None if :func:`start_java` has not started it."""
    return _logs[-1] if _logs else None


def kept_java_log() -> Path | None:
    """Return the file with what Java has printed, which is kept from now on, for a message.

    None if it has printed nothing.
    """
    log = java_log()
    return log.keep() if log is not None and log.lines else None


def start_java(conf: SparkConf) -> Any:
    """Start Java for a Spark context, unless it runs; return PySpark's gateway to it."""
    if SparkContext._gateway is not None:
        return SparkContext._gateway
    _logs.append(JavaLog())
    return _logs[-1].start(conf)
