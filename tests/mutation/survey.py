# SPDX-License-Identifier: Apache-2.0
"""Mutants of a module, made and run by mutmut in a folder of their own, and what became of them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
import difflib
import json
from pathlib import Path
import resource
import shutil
import subprocess
import sys

__all__ = ["ROOT", "Mutant", "run_mutants"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("host", "hdl", "sim", "bench", "spark_offload", "tests")

#: A mutant counts as endless after ``TIMES * (seconds that its tests take + PATIENCE)``.
TIMES, PATIENCE = 4.0, 4.0

#: Bytes of memory that a mutant may take: one that never ends may take more and more of it.
MEMORY = 2 << 30

#: The last digits that a sample takes first.
DIGITS = "3706192845"

#: What the exit code of a mutant's tests means; any other one is an end by a signal.
OUTCOMES = {0: "survived", 1: "killed", 3: "killed", 33: "untested", 5: "untested"}
ENDLESS = {24, -24, 36, 152, 255}


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Parameters
    ----------
    name : str
        What mutmut calls it.
    function : str
        The function, with its class.
    statement : str
        The statement that the change leaves, in Python's own spelling; of a statement that is
        gone, the old one with ``gone: ``.
    outcome : str
        ``killed``, ``endless``, ``survived``, ``untested``, or ``left out``: of a sample, or of a
        function that only Spark can run.
    """

    name: str
    function: str
    statement: str
    outcome: str

    @property
    def noticed(self) -> bool:
        """Whether the tests failed."""
        return self.outcome in ("killed", "endless")


def run_mutants(
    module: str,
    tests: tuple[str, ...],
    *,
    jobs: int,
    again: bool = False,
    tenths: int = 10,
    left_out: tuple[str, ...] = (),
) -> list[Mutant]:
    """Make all mutants of a module, run the tests on each, and say what happened.

    Parameters
    ----------
    module : str
        Path of a source file, from the root of the repository.
    tests : tuple of str
        Paths of test files.
    jobs : int
        Processes at once.
    again : bool
        Whether only those are run again that the tests did not notice the last time; all are run
        if the source has changed since.
    tenths : int
        How many of every ten mutants are run, by the last digits of their numbers.
    left_out : tuple of str
        Functions that no test reaches by intention: their mutants count as left out.
    """
    folder = ROOT / "build" / "mutation" / module.removesuffix(".py").replace("/", "-")
    source, kept = (ROOT / module).read_bytes(), folder / "source"
    again = again and kept.exists() and kept.read_bytes() == source  # else all mutants are others
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(source)
    for package in PACKAGES:
        if not (folder / package).is_symlink():
            (folder / package).symlink_to(ROOT / package)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project + _settings(module, tests), encoding="utf-8")
    names = [f"*{digit}" for digit in DIGITS[:tenths]] if tenths < 10 else []
    if again:
        open_ones = ("survived", "untested")
        before = list(_mutants(folder, module, left_out))
        names = [each.name for each in before if each.outcome in open_ones]
        if not names:
            return before
        # Which tests reach which function: other ones may by now.
        (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *names]
    with open(folder / "log", "w", encoding="utf-8") as log:
        done = subprocess.run(
            command,
            cwd=folder,
            stdout=log,
            stderr=log,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )
    mutants = list(_mutants(folder, module, left_out))
    if done.returncode or not mutants:
        raise RuntimeError(f"mutmut did not run through; see {folder / 'log'}")
    return mutants


def _settings(module: str, tests: tuple[str, ...]) -> str:
    """Return the settings of mutmut, which reads them from ``pyproject.toml``."""
    settings = {
        "source_paths": [module.partition("/")[0]],
        "only_mutate": [module],
        "also_copy": [package for package in PACKAGES if not module.startswith(package)],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "--hypothesis-profile", "mutation"],
        "pytest_add_cli_args_test_selection": list(tests),
        "timeout_multiplier": TIMES,
        "timeout_constant": PATIENCE,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join(["", "", "[tool.mutmut]", *lines, ""])


def _mutants(folder: Path, module: str, left_out: tuple[str, ...]) -> Iterator[Mutant]:
    """Read what mutmut has left: a module that holds all mutants, and their exit codes."""
    place = folder / "mutants" / module
    if not place.exists():
        return
    tree = ast.parse(place.read_text(encoding="utf-8"))
    bodies = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            name, _, which = node.name.rpartition("__mutmut_")
            bodies[name, which] = _statements(node)
    codes = json.loads(place.with_name(place.name + ".meta").read_text())["exit_code_by_key"]
    for key, code in codes.items():
        name, _, which = key.rpartition(".")[2].rpartition("__mutmut_")
        function = ".".join(part for part in name.removeprefix("x").strip("_").split("ǁ") if part)
        statement = _change(bodies[name, "orig"], bodies[name, which])
        outcome = _outcome(code)
        if outcome == "untested" and function in left_out:
            outcome = "left out"
        yield Mutant(key, function, statement, outcome)


def _outcome(code: int | None) -> str:
    if code is None:
        return "left out"
    return "endless" if code in ENDLESS else OUTCOMES.get(code, "killed")


def _statements(function: ast.FunctionDef) -> list[str]:
    """Return the lines of a function in Python's own spelling: one a statement."""
    head = ast.unparse(function.args)
    return [f"def ({head})", *(line for part in function.body for line in _lines(part))]


def _lines(node: ast.stmt) -> list[str]:
    return [line.strip() for line in ast.unparse(node).splitlines()]


def _change(old: list[str], new: list[str]) -> str:
    """Return the statement in which two functions differ."""
    lines = list(difflib.ndiff(old, new))
    added = [line[2:] for line in lines if line.startswith("+ ")]
    gone = [line[2:] for line in lines if line.startswith("- ")]
    return added[0] if added else f"gone: {gone[0]}" if gone else "as before"
