# SPDX-License-Identifier: Apache-2.0
"""The Python in README.md runs, and prints what README.md shows."""

from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent


def block(language):
    """Return the first fenced block of ``language``."""
    text = (ROOT / "README.md").read_text()
    return re.search(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def test_python_of_the_readme_prints_what_it_shows():
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert block("text") in done.stdout
