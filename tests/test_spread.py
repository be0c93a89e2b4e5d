# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

import pytest

from tests.spread import unit_of


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("tests/host/test_api.py::test_a", "tests/host/test_api.py::TestB::test_c[1::2]", True),
        ("tests/host/test_api.py::test_a", "tests/host/test_main.py::test_a", False),
        ("tests/spark_offload/test_join.py::test_a", "tests/spark_offload/cli/test_b.py::t", True),
        ("tests/spark_offload/test_join.py::test_a", "tests/host/test_api.py::test_a", False),
        (
            "tests/spark_offload/test_streaming.py::a",
            "tests/spark_offload/stream/test_b.py::c",
            True,
        ),
        (
            "tests/spark_offload/test_join.py::test_a",
            "tests/spark_offload/stream/test_b.py::c",
            False,
        ),
    ],
)
def test_a_worker_has_whole_files_and_one_session_of_spark(first, second, together):
    assert (unit_of(first) == unit_of(second)) == together


@pytest.mark.long
def test_workers_get_these_units(root):
    batches = ["task/test_departing_rows.py", "test_words.py"]
    files = ["stream/test_question.py", *batches]
    command = [
        *(sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadfile"),
        *("--no-loadscope-reorder", "-p", "no:cacheprovider", "tests/test_fewer.py"),
        *(f"tests/spark_offload/{file}" for file in files),
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout
    ran = re.findall(r"^\[(gw\d)\].* PASSED (\S+)::", done.stdout, re.MULTILINE)
    workers = {worker for worker, file in ran if file.endswith(tuple(batches))}
    assert len(workers) == 1
    assert len({file for _, file in ran}) == 4
