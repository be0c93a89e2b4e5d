# SPDX-License-Identifier: Apache-2.0
"""Print how much code each folder has: `python -m tests.code_lines [FOLDER ...]`.

Lines of code are lines with something other than a comment or a part of a docstring. A folder's
packages are told one by one below it.
"""

import argparse
import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, cached_property
import io
from pathlib import Path
import subprocess
import sys
import tokenize

__all__ = [
    "Source",
    "code_lines",
    "loaded",
    "lone_modules",
    "main",
    "readers",
    "sources",
    "table",
    "wide",
]

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "host", "spark_offload", "hdl", "sim", "splitjoin", "examples", "tools", "formal", "bench",
    "tests",
)  # fmt: skip

SMALL, SHORT, MOST_ARGUMENTS = 40, 60, 10
"""Lines of a small file, lines of a module that should have several importers, and arguments."""

#: What the command `join` needs before it reads its options, by the name of the package.
ENTRIES = {"host": "host.cli.join", "spark_offload": "spark_offload.__main__"}

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def documented(tree):
    """Yield the docstring of each module, class and function, as a node."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def code_lines(text, tree=None):
    """Return the number of lines of code in a module: not blank, no comment, no docstring.

    A line of a string that is no docstring is code, unless it is blank.
    """
    lines, docstrings = text.splitlines(), set()
    for node in documented(tree or ast.parse(text)):
        if isinstance(node.value, str):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return sum(bool(lines[number - 1].strip()) for number in code - docstrings)


@dataclass
class Source:
    """A module, and what is counted in it."""

    path: Path
    root: Path = ROOT
    tree: ast.Module = field(init=False, repr=False)
    text: str = field(init=False, repr=False)
    lines: int = field(init=False)

    def __post_init__(self):
        self.text = self.path.read_text(encoding="utf-8")
        self.tree, self.lines = ast.parse(self.text), len(self.text.splitlines())

    @cached_property
    def code(self):
        """The number of its lines of code."""
        return code_lines(self.text, self.tree)

    @property
    def module(self):
        """The dotted name of the module; that of its folder for an ``__init__``."""
        parts = self.path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def imports(self):
        """The dotted names that the module imports: modules, and what is taken from them."""
        found, here = set(), self.path.relative_to(self.root).parts[:-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = list(here[: len(here) - node.level + 1]) if node.level else []
                module = ".".join(above + ([node.module] if node.module else []))
                found.update({module, *(f"{module}.{alias.name}" for alias in node.names)})
        return found


@cache
def sources(folder, root=ROOT):
    """Return the modules of a top folder."""
    return [Source(path, root) for path in sorted((root / folder).rglob("*.py"))]


def readers(folders, root=ROOT):
    """Return the modules whose imports count: all but tests, and those of ``folders``."""
    return [source for folder in {*FOLDERS[:-1], *folders} for source in sources(folder, root)]


def lone_modules(found, by):
    """Return the names of short modules that only one other module imports.

    Parameters
    ----------
    found : list of Source
        The modules that are judged.
    by : list of Source
        The modules whose imports count.
    """
    importers = defaultdict(set)
    for source in by:
        for name in source.imports - {source.module}:
            importers[name].add(source.module)
    return [
        source.module
        for source in found
        if source.lines < SHORT
        and source.path.name != "__init__.py"
        and len(importers[source.module]) == 1
    ]


def wide(source):
    """Yield line and name of each function of a module that takes too many arguments."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            taken = node.args
            names = [one.arg for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MOST_ARGUMENTS:
                yield node.lineno, node.name


def loaded(package, root=ROOT):
    """Return how many modules of ``package`` its command loads; None if it is no command."""
    if package not in ENTRIES:
        return None
    script = (
        f"import sys, {ENTRIES[package]}\n"
        f"print(sum(name.split('.')[0] == {package!r} for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def table(folders, root=ROOT):
    """Return lines of text that tell of each folder, and of the packages in it."""
    heads = f"{'folder':<28}{'code':>8}{'files':>7}{f'<{SMALL} lines':>11}"
    result = [heads + f"{'lone':>6}{'wide':>6}{'loaded':>8}"]
    for folder in folders:
        found = sources(folder, root)
        rooms = defaultdict(list)
        for source in found:
            inside = source.path.relative_to(root / folder).parts
            if len(inside) > 1:
                rooms[inside[0]].append(source)
        lone = len(lone_modules(found, readers(folders, root)))
        count = loaded(folder, root)
        rows = [(folder, found, lone, "" if count is None else count)]
        rows += [(f"  {folder}/{name}", of_room, "", "") for name, of_room in rooms.items()]
        for name, of_row, short, needed in rows:
            small = sum(source.lines < SMALL for source in of_row)
            many = sum(1 for source in of_row for _ in wide(source))
            code = sum(source.code for source in of_row)
            result.append(
                f"{name:<28}{code:>8,}{len(of_row):>7}{small:>11}{short:>6}{many:>6}{needed:>8}"
            )
    return result


def main(arguments=None, root=ROOT):
    """Print the table, and where functions take too many arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.code_lines", description=__doc__.partition(":")[0]
    )
    parser.add_argument("folders", nargs="*", default=FOLDERS, metavar="FOLDER")
    parser.add_argument("--names", action="store_true", help="name lone modules, wide functions")
    parser.add_argument("--files", action="store_true", help="tell of each file, largest first")
    options = parser.parse_args(arguments)
    print("\n".join(table(options.folders, root)))
    print(
        f"lone: modules under {SHORT} lines with one importer; wide: functions with more than "
        f"{MOST_ARGUMENTS} arguments; loaded: modules of it that its command loads"
    )
    every = [source for folder in options.folders for source in sources(folder, root)]
    if options.files:
        for source in sorted(every, key=lambda source: -source.code):
            print(f"{source.code:>8,} {source.path.relative_to(root)}")
    if options.names:
        for name in lone_modules(every, readers(options.folders, root)):
            print(f"lone: {name}")
        for source in every:
            for line, name in wide(source):
                print(f"wide: {source.path.relative_to(root)}:{line} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
