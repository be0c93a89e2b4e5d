# SPDX-License-Identifier: Apache-2.0
"""The packages import each other in one direction only (docs/architecture.md)."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
import subprocess
import sys

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: What only a checkout has: no wheel brings it, so nothing that it brings may import it.
CHECKOUT = {"bench", "formal", "tests"}

FORBIDDEN = {
    "host": {"amaranth", "cocotb", "hdl", "pyspark", "sim", "spark_offload", *CHECKOUT},
    "spark_offload": {"amaranth", "cocotb", "hdl", "sim", *CHECKOUT},
    "hdl": {"cocotb", "host", "pyspark", "sim", "spark_offload", *CHECKOUT},
    "sim": {"pyspark", "spark_offload", *CHECKOUT},
    # Proofs are of the handshake joins, too, which use nothing of what measures them.
    "formal": {"cocotb", "host", "pyspark", "sim", "spark_offload", "tests"},
    "bench": {"tests"},
    "bench/handshake": {"bench", "cocotb", "host", "pyspark", "sim", "spark_offload", *CHECKOUT},
    # … but for the two whose functions it has under its own name.
    "splitjoin": {"amaranth", "cocotb", "pyspark", "sim", *CHECKOUT},
    "examples": {"amaranth", "cocotb", "hdl", "sim", *CHECKOUT},
}

# Imports every module of the packages named on the command line; those of the first are blocked.
IMPORT_ALL = """
import importlib, pkgutil, sys

blocked = set(sys.argv[1].split(","))

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
for package in sys.argv[2:]:
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, f"{package}.", onerror=print):
        importlib.import_module(found.name)
        print(found.name)
"""


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(path):
    """Yield the first name of every import in ``path``, wherever it stands, with its line."""
    for node in ast.walk(ast.parse(path.read_text(), path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0], node.lineno


@pytest.mark.parametrize("package", FORBIDDEN)
def test_package_imports_only_the_layers_below(package):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(package)
        for name, line in imported(path)
        if name in FORBIDDEN[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_examples_of_operators_need_no_spark():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in (ROOT / "examples").glob("*.py")
        for name, line in imported(path)
        if name in {"pyspark", "spark_offload"}
    ]
    assert not wrong, "\n".join(wrong)


def modules_imported(path, package):
    """Yield the dotted names of what ``path`` imports from its own package, which is named in full.

    A name that is imported from a module comes after the module's.
    """
    place = list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(), path)):
        if isinstance(node, ast.ImportFrom):
            above = place[: len(place) - node.level + 1] if node.level else []
            module = [*above, *(node.module.split(".") if node.module else [])]
            if module[0] == package:
                yield from ([*module, alias.name] for alias in node.names)


def room(parts, package):
    """Return the folder or the file right below ``package`` that a dotted name leads to."""
    if len(parts) > 1 and (ROOT / package / parts[1]).is_dir():
        return parts[1]
    return parts[1].removesuffix(".py") if len(parts) > 1 else package


def test_proofs_know_of_measurements_the_handshake_joins_only():
    found = [parts for path in sources("formal") for parts in modules_imported(path, "bench")]
    assert {parts[1] for parts in found} == {"handshake"}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_folders_of_a_package_import_each_other_in_one_direction(package):
    below = {}
    for path in sources(package):
        here = room(path.relative_to(ROOT).parts, package)
        found = {room(parts, package) for parts in modules_imported(path, package)}
        below.setdefault(here, set()).update(found - {here})
    assert any(below.values()) or len(below) <= 4, (
        "only a package of few modules has nothing to import"
    )
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_hdl_does_not_postpone_annotations():
    """Amaranth reads the members of a component from its annotations, as objects."""
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources("hdl")
        if any(name == "__future__" for name, _ in imported(path))
    ]
    assert not wrong, wrong


def import_all(packages, blocked, folder):
    return subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, ",".join(sorted(blocked)), *packages],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("package", ["host", "spark_offload"])
def test_package_imports_where_the_hardware_tools_are_missing(package, tmp_path):
    done = import_all([package], FORBIDDEN[package], tmp_path)
    assert done.returncode == 0, done.stderr
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(package)}
    modules = {name for name in modules if not name.endswith("__init__")}
    assert modules <= set(done.stdout.split())


def test_blocked_module_is_noticed(tmp_path):
    done = import_all(["host"], {"json"}, tmp_path)
    assert done.returncode != 0
    assert "json is blocked" in done.stderr


@pytest.mark.parametrize("module", ["spark_offload", "splitjoin.spark"])
def test_spark_is_imported_without_streams_and_with_few_modules(module):
    """What only programs with streams need is loaded when it is asked for."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = [name for name in done.stdout.split() if name.split(".")[0] in ("host", "spark_offload")]
    assert [name for name in ours if name.startswith("spark_offload.stream")] == []
    assert len(ours) <= 140
    program = f"from {module} import stream_metrics, MicroBatch; print(MicroBatch.__name__)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
