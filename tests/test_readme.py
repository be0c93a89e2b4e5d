# SPDX-License-Identifier: Apache-2.0
"""The Python in README.md runs, and prints what README.md shows."""

import ast
from importlib import import_module
import inspect
from pathlib import Path
import re
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parent.parent


def block(language):
    """Return the first fenced block of ``language``."""
    text = (ROOT / "README.md").read_text()
    return re.search(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def test_what_the_python_of_the_readme_calls_exists():
    tree, imported = ast.parse(block("python")), {}
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            module = import_module(statement.module)
            imported |= {name.name: getattr(module, name.name) for name in statement.names}
    called = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in imported
    ]
    assert len(called) >= len(imported)
    for call in called:
        named = {word.arg: word.value for word in call.keywords}
        inspect.signature(imported[call.func.id]).bind(*call.args, **named)


@pytest.mark.long
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
