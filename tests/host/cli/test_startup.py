# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""


def run(root, folder, *words):
    (folder / "pyarrow.py").write_text(INTERRUPTED)
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(root)])},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("package", ["host", "spark_offload"])
def test_an_interrupt_while_modules_are_loaded_is_one_line(root, tmp_path, package):
    done = run(root, tmp_path, "-m", package, "join")
    assert done.stderr == f"python -m {package}: interrupted; nothing was written.\n"
    assert done.returncode == -2  # by the signal, which a shell shows as 130


def test_other_programs_keep_their_stack_traces(root, tmp_path):
    done = run(root, tmp_path, "-c", "import host.session.join")
    assert done.stderr.endswith("KeyboardInterrupt\n")
    assert "Traceback" in done.stderr
