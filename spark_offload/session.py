# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the commands: quiet, local, with this very Python on both sides."""

from collections.abc import Iterator
from contextlib import contextmanager
import os
import shutil
import sys
import tempfile
from typing import IO

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from host import FailureError
from host.errors import MissingToolError

__all__ = ["PROVIDER", "ROCKSDB", "open_session", "use_this_python"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""Option that names the store in which streaming queries keep their state."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only store of Spark that keeps maps and timers by key, as streaming joins need it."""


def open_session(
    name: str, *, master: str = "local[*]", options: dict[str, str] | None = None
) -> SparkSession:
    """Return the running Spark session, or start one that needs nothing set by hand.

    The Python workers run the interpreter that runs this function, the web interface is off, what
    the Java process prints is kept aside, timestamps with a zone are shown in UTC, and streaming
    queries keep their state in RocksDB, which streaming joins need.

    Parameters
    ----------
    name : str
        Application name.
    master : str
        Spark master, used when no session is running.
    options : dict of str to str, optional
        Further Spark options; they override those set here.

    Raises
    ------
    MissingToolError
        If there is no Java.
    FailureError
        If Spark does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
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
        **({"spark.driver.bindAddress": "127.0.0.1"} if master.startswith("local") else {}),
        **({"spark.driver.host": "127.0.0.1"} if master.startswith("local") else {}),
        **(options or {}),
    }
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _java_output_aside() as output:
        try:
            session = builder.getOrCreate()
        except (PySparkException, OSError) as error:
            output.seek(0)
            lines = output.read().strip().splitlines()
            raise FailureError(
                f"Spark did not start: {lines[-1] if lines else str(error).strip()}"
            ) from error
    use_this_python(session.sparkContext)
    return session


def use_this_python(context: SparkContext) -> None:
    """Let the workers of a local Spark run the interpreter of this process.

    Unless someone chose another by ``PYSPARK_PYTHON``, Spark takes the ``python3`` that it finds on
    PATH, which lacks PyArrow whenever this process runs from an environment that is not activated.
    """
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


@contextmanager
def _java_output_aside() -> Iterator[IO[str]]:
    """Let a Java process that is started inside write its standard error to a file.

    Its log lines and warnings come from several places, some of them before any setting is read;
    the errors that matter reach Python as exceptions.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        saved = os.dup(2)
        try:
            os.dup2(output.fileno(), 2)
            yield output
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
