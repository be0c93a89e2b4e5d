# SPDX-License-Identifier: Apache-2.0
"""Every public module says what it is, and exports only names that exist."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "hdl", "sim", "formal", "bench", "host", "spark_offload", "splitjoin", "examples", "tools",
)  # fmt: skip


def public(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return not any(part.startswith("_") and part != "__init__" for part in parts)


#: Modules that need a package of an extra, which `make setup-fpga` installs.
OPTIONAL = {"bench.peers.duckdb_queries": "duckdb", "bench.peers.polars_queries": "polars"}

MODULES = [
    path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if public(path)
]


def module_id(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_module_has_a_docstring(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_every_exported_name_exists_once(path):
    if needed := OPTIONAL.get(module_id(path)):
        pytest.importorskip(needed, reason="needs make bench-peers, or make setup-fpga")
    module = importlib.import_module(module_id(path))
    if path.name == "__init__.py" and not hasattr(module, "__all__"):
        body = ast.parse(path.read_text()).body
        assert len(body) <= 1, "an __init__ that does more than explain itself has an __all__"
        return
    names = module.__all__
    assert all(isinstance(name, str) for name in names)
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []
