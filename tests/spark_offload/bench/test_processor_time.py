# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

import pytest

from bench.spark import race
from bench.spark.race import processor_seconds

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc of Linux")

#: A process that starts another one, which works for a second and waits.
PROGRAM = """
import subprocess, sys
work = "import sys, time\\nwhile time.process_time() < 1: pass\\nprint('done', flush=True)\\n"
child = subprocess.Popen([sys.executable, "-c", work + "sys.stdin.read()"], stdin=subprocess.PIPE)
sys.stdin.read()
child.communicate()
"""


def test_the_time_of_descendants_counts_while_they_live_and_afterwards():
    before = processor_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "done\n"
        assert processor_seconds(process.pid) >= 0.9
        assert processor_seconds() - before >= 0.9
        process.communicate("")
    assert processor_seconds() - before >= 0.9


def test_another_system_tells_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(race, "PROCESSES", tmp_path / "proc")
    assert processor_seconds() is None
