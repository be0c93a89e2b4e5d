# SPDX-License-Identifier: Apache-2.0
"""An input of a command: a file, or a folder of files of one format."""

from pathlib import Path

from host.errors import UsageError
from host.files.formats import FORMATS, format_of

__all__ = ["files_of"]


def files_of(path: str | Path) -> list[Path]:
    """Return the files that an input consists of: itself, or those in a folder, by name.

    Files whose names begin with ``.`` or ``_`` are left out: whoever writes a folder of files keeps
    notes in these.

    Raises
    ------
    UsageError
        If the folder has no file of a supported format, or files of several formats.
    """
    place = Path(path)
    if not place.is_dir():
        return [place]
    files = sorted(
        file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "_"))
    )
    formats = {format_of(file) for file in files}
    if len(formats) != 1:
        found = f"has files of {' and '.join(sorted(formats))}" if formats else "has no files"
        raise UsageError(
            f"Folder {str(path)!r} {found}; an input is a folder of files that all end in one of "
            f"{', '.join(FORMATS)}."
        )
    return files
