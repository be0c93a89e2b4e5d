# SPDX-License-Identifier: Apache-2.0
"""Interrupts from the keyboard while Spark starts or works: one line, and nothing stays behind."""

from collections.abc import Iterator
from contextlib import contextmanager
import logging
import signal
import subprocess
import threading
import traceback
from types import FrameType
import warnings

from pyspark.sql import SparkSession

__all__ = ["kept_handler", "no_orphan", "quick_interrupts", "stop_session"]

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
def kept_handler() -> Iterator[None]:
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
