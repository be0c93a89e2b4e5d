# SPDX-License-Identifier: Apache-2.0
"""The model of the soak shares no code with what it checks."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
#: Modules that build what the model is compared with, or write the ledger.
BUILDERS = {"__main__.py", "runs.py", "shapes.py"}
MODULES = sorted(
    path.name
    for path in FOLDER.glob("*.py")
    if path.name not in BUILDERS and not path.name.startswith("test_")
)


def imports(path):
    """Yield what a module imports: packages by their first name, neighbours with a dot."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f".{node.module}" if node.level else node.module.partition(".")[0]


@pytest.mark.parametrize("name", MODULES)
def test_imports_nothing_of_hardware_or_host(name):
    found = set(imports(FOLDER / name))
    assert not found & {"hdl", "host", "sim", "bench", "tests", "amaranth"}, found


@pytest.mark.parametrize("name", ["model.py", "checking.py", "machine.py", "programs.py"])
def test_model_is_made_of_modules_that_are_free_of_it(name):
    seen, waiting = set(), {name}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        near = {f"{found[1:]}.py" for found in imports(FOLDER / module) if found[0] == "."}
        waiting |= near - seen
    assert not seen & BUILDERS
