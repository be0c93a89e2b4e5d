# SPDX-License-Identifier: Apache-2.0
"""Interrupts from the keyboard while Spark starts or works: nothing of it stays behind."""

from collections.abc import Iterator
from contextlib import contextmanager
import signal
import subprocess
import threading
import traceback

from pyspark.sql import SparkSession

__all__ = ["no_orphan", "stop_session"]

#: Seconds for Spark to stop; its Java process ends with this one in any case.
STOP_SECONDS = 10


@contextmanager
def no_orphan() -> Iterator[None]:
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


def stop_session(session: SparkSession) -> None:
    """Stop a session whose work was interrupted; further interrupts are of no use meanwhile."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # In a thread of its own, which has its own connection to Java: this one's may be waiting
        # for an answer.
        stopper = threading.Thread(target=session.stop, name="splitjoin-stop", daemon=True)
        stopper.start()
        stopper.join(STOP_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)
