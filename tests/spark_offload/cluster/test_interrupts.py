# SPDX-License-Identifier: Apache-2.0
"""Interrupts of a program of its own, as the tests' session has Python's handler."""

import os
from pathlib import Path
import subprocess
import sys
import warnings

import pytest

from spark_offload.cluster.session import stop_session

ROOT = Path(__file__).resolve().parents[3]

WAITING = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
from spark_offload.cluster.session import quick_interrupts, stop_session
from spark_offload.cluster.session import open_session
try:
    with quick_interrupts():
        spark = open_session("waiting", master="local[1]")
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        spark._jvm.java.lang.Thread.sleep(60_000)
except KeyboardInterrupt:
    print("interrupted")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
stop_session(spark)
"""

IGNORING = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from spark_offload.cluster.session import quick_interrupts
from spark_offload.cluster.session import open_session
with quick_interrupts():
    spark = open_session("ignoring", master="local[1]")
    os.kill(os.getpid(), signal.SIGINT)
    print(spark.range(3).count())
spark.stop()
"""


def said(program):
    """Run a program; return what it printed and what it complained of."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.stdout, done.stderr


@pytest.mark.long
def test_an_interrupt_while_java_works_prints_no_stack_traces():
    assert said(WAITING) == ("interrupted\n", "")


@pytest.mark.long
def test_a_job_in_the_background_ignores_interrupts_after_spark_has_started_too():
    assert said(IGNORING) == ("3\n", "")


def test_a_session_that_java_leaves_first_is_stopped_without_a_warning(recwarn):
    class Session:
        def stop(self):
            warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, 2)
            self.stopped = True

    session = Session()
    stop_session(session)
    assert session.stopped
    assert not recwarn.list
