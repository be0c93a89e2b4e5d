# SPDX-License-Identifier: Apache-2.0
"""Writing a bundle: a folder with the Verilog and the manifest of one accelerator."""

import json
import os
from pathlib import Path
import shutil
import tempfile

from .accelerator import Accelerator
from .manifest import describe
from .verilog import to_verilog

__all__ = ["MANIFEST", "VERILOG", "write_bundle"]

MANIFEST = "manifest.json"
VERILOG = "splitjoin.v"


def check_target(folder):
    """Raise :exc:`ValueError` unless ``folder`` can become, or already is, a bundle."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name != MANIFEST and not path.name.startswith("splitjoin."):
                raise ValueError(
                    f"Folder {str(folder)!r} holds {path.name!r}, which belongs to no bundle; "
                    f"choose another output folder"
                )
    elif folder.exists():
        raise ValueError(f"Output {str(folder)!r} is a file, not a folder")


def replace_folder(new, old):
    """Put folder ``new`` in the place of ``old``, which may exist."""
    if not old.exists():
        new.rename(old)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{old.name}.", dir=old.parent)) / old.name
    old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside.parent)


def write_bundle(parameters, output):
    """Write the bundle of the accelerator with ``parameters``.

    The folder appears complete or not at all: it is written beside its place and then moved. An
    older bundle in that place goes, with everything that was built from it; if it is the same
    bundle, nothing is touched and what was built from it stays valid. A folder with any file that
    does not belong to a bundle (``manifest.json``, ``splitjoin.*``) is refused.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    output : path-like
        The folder; its parents are made.

    Returns
    -------
    dict
        The manifest.
    """
    folder = Path(os.path.abspath(output))
    check_target(folder)
    verilog = to_verilog(Accelerator(parameters))
    manifest = describe(parameters, verilog, verilog_file=VERILOG)
    texts = {VERILOG: verilog, MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"}
    if all(is_same(folder / name, text) for name, text in texts.items()):
        return manifest

    folder.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new = workplace / folder.name
        new.mkdir()
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
        replace_folder(new, folder)
    finally:
        shutil.rmtree(workplace)
    return manifest


def is_same(path, text):
    """Tell whether the file at ``path`` exists and holds ``text``."""
    return path.is_file() and path.read_bytes() == text.encode()
