# SPDX-License-Identifier: Apache-2.0
"""Checks and writing of a command's output files: none is an input, and each appears atomically.

Every command that reads and writes files calls :func:`require_outputs` before it reads anything.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
import glob
from itertools import combinations
import os
from pathlib import Path

from host.errors import FailureError, UsageError
from host.files.atomic import atomic_file

__all__ = ["atomic_output", "inputs_of", "require_outputs"]


@contextmanager
def atomic_output(path: str | Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces ``path`` if the block raises no error.

    Raises
    ------
    FailureError
        If the file cannot be written, for example because the disk is full. An existing file stays
        unchanged.
    """
    try:
        with atomic_file(path) as place:
            yield place
    except OSError as error:
        # PyArrow's own message is longer than the reason alone.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FailureError(f"Writing {str(path)!r} failed: {reason}.") from error


def inputs_of(options: argparse.Namespace) -> dict[str, Path]:
    """Return the paths that a join on the command line reads, by option."""
    places = {"--left": Path(options.left), "--right": Path(options.right)}
    kind, _, bundle = (options.device or "").partition(":")
    if kind in ("sim", "software") and bundle:
        places["--device"] = Path(bundle)
    return places


def require_outputs(
    outputs: Mapping[str, str | Path], inputs: Mapping[str, str | Path] | None = None
) -> None:
    """Raise unless each output can be written without overwriting an input or another output.

    Files are compared by what the operating system says they are, not by their names. Symbolic
    links, hard links, ``..`` and names that differ only in case make no difference. If an input is
    a folder, everything in it is protected.

    Parameters
    ----------
    outputs, inputs : mapping of str to path-like
        Paths, by the options that name them.

    Raises
    ------
    UsageError
        If an output is an input, lies in an input or contains one, if it is another output, or if
        it cannot be written.
    """
    for option, output in outputs.items():
        for source, place in (inputs or {}).items():
            found = (_relation(Path(output), each) for each in _places(place))
            if relation := next(filter(None, found), None):
                raise UsageError(
                    f"{option} {str(output)!r} {relation} {source} {str(place)!r}, which it would "
                    f"overwrite; name another file for {option}."
                )
        _require_writable(option, Path(output))
    for (first, one), (second, other) in combinations(outputs.items(), 2):
        if _is_same(Path(one), Path(other)):
            raise UsageError(
                f"{first} and {second} are the same file, {str(one)!r}; name two files."
            )


def _require_writable(option: str, path: Path) -> None:
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise UsageError(
            f"Folder {str(target.parent)!r}, where {option} {str(path)!r} should go, does not "
            f"exist; make it first."
        )
    if target.is_dir():
        raise UsageError(f"{option} {str(path)!r} cannot be written: it is a folder.")
    if target.exists() and not target.is_file():
        raise UsageError(f"{option} {str(path)!r} cannot be written: it is no regular file.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"{option} {str(path)!r} cannot be written: files cannot be made in its folder."
        )


def _relation(output: Path, source: Path) -> str | None:
    """Return in words how an output would overwrite an input; None if it would not."""
    if _is_same(output, source):
        return "is the same file as"
    if output.is_dir() and _lies_in(source, output):
        return "is a folder that holds"
    if source.is_dir():
        if _lies_in(output, source):
            return "lies in"
        if output.exists() and any(_is_same(output, file) for file in _files_in(source)):
            return "is also a file of"
    return None


def _places(source: str | Path) -> list[Path]:
    """Return what an input consists of: the files of a pattern, or the file or folder itself."""
    if glob.has_magic(str(source)) and not Path(source).exists():
        return [Path(name) for name in glob.glob(str(source), recursive=True)]
    return [Path(source)]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist yet
        pass
    if one.exists() or other.exists():
        return False
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    # On some file systems, names that differ only in case mean one file.
    return first.name.casefold() == second.name.casefold() and (
        first.parent == second.parent or _is_same_folder(first.parent, second.parent)
    )


def _is_same_folder(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _lies_in(path: Path, folder: Path) -> bool:
    return any(_is_same_folder(parent, folder) for parent in Path(os.path.realpath(path)).parents)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, including those behind links, and visit each folder once."""
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # links form a cycle
            continue
        seen.add((status.st_dev, status.st_ino))
        yield from (Path(place, file) for file in files)
