# SPDX-License-Identifier: Apache-2.0
"""Writes a bundle: a folder with Verilog, netlist and manifest of one accelerator."""

from contextlib import suppress
from functools import lru_cache
import glob
import json
import os
from pathlib import Path
import shutil
import tempfile
import time

from .aggregate.accelerator import describe_aggregate
from .aggregate.aggregate_parameters import AggregateParameters
from .families.choice import make_accelerator
from .fpga.reports import routed_clock
from .manifest import describe as describe_join
from .shells.axi import AxiOptions
from .shells.files import check_shells, describe_shell, shell_files
from .shells.names import SHELLS, shell_top
from .verilog.conversion import to_netlist

__all__ = ["MANIFEST", "NETLIST", "VERILOG", "describe_bundle", "write_bundle"]

MANIFEST = "manifest.json"
VERILOG = "splitjoin.v"
NETLIST = "splitjoin.json"

#: How the names of all files of a bundle begin, but for its manifest.
OWN = ("splitjoin.", ".splitjoin.", *(f"{shell_top(shell)}." for shell in SHELLS))

#: Suffix of the name of a folder that is being written.
PARTIAL = ".partial"
ABANDONED_SECONDS = 3600
#: Number of accelerators whose texts are kept, for a program that writes the same bundles again.
KEPT = 4


def check_target(folder):
    """Raise :exc:`ValueError` unless ``folder`` can become, or already is, a bundle."""
    if folder.is_dir():
        for path in folder.iterdir():
            # A process that was killed while it wrote a file leaves a name that begins with a dot.
            if path.name != MANIFEST and not path.name.startswith(OWN):
                raise ValueError(
                    f"Folder {str(folder)!r} holds {path.name!r}, which belongs to no bundle; "
                    f"choose another output folder"
                )
    elif folder.exists():
        raise ValueError(f"Output {str(folder)!r} is a file, not a folder")


def remove_abandoned(folder):
    """Remove what killed processes have left of bundles that were to become ``folder``.

    A bundle is written within a second, so no process is still writing one that is older than an
    hour.
    """
    for path in folder.parent.glob(f".{glob.escape(folder.name)}.*{PARTIAL}"):
        with suppress(OSError):  # another process has just removed or finished it
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(path)


def replace_folder(new, old, aside):
    """Move folder ``new`` to ``old``, after moving an existing ``old`` to ``aside``."""
    if not old.exists():
        new.rename(old)
        return
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise


def generate(parameters):
    """Return the Verilog of an accelerator, and its netlist.

    A recent result for the same parameters is returned from memory, except with a custom predicate:
    its function may have changed in the meantime.
    """
    if parameters.words().get("predicate") is not None:
        return to_netlist(make_accelerator(parameters))
    return generate_once(parameters)


@lru_cache(maxsize=KEPT)
def generate_once(parameters):
    """Return the same as :func:`generate`, from memory if possible."""
    return to_netlist(make_accelerator(parameters))


def describe_bundle(parameters):
    """Return the manifest of the bundle of an accelerator, and the texts of the other files.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.

    Returns
    -------
    manifest : dict
    texts : dict of str to str
        Verilog and netlist, by the names of their files.
    """
    verilog, netlist = generate(parameters)
    others = [("netlist", NETLIST, netlist)]
    clock = routed_clock(parameters)
    is_aggregate = isinstance(parameters, AggregateParameters)
    describe = describe_aggregate if is_aggregate else describe_join
    manifest = describe(parameters, verilog, verilog_file=VERILOG, others=others, clock=clock)
    return manifest, {VERILOG: verilog, NETLIST: netlist}


def write_bundle(parameters, output, *, shells=(), axi=None):
    """Write the bundle of the accelerator with ``parameters``.

    The folder appears complete or not at all: it is written beside its final place and then moved.
    If that fails, an older bundle in that place stays as it was. Otherwise the older bundle is
    removed, with everything that was built from it.

    If the older bundle is the same, nothing is touched, and what was built from it stays valid. If
    only its clock or its shells have changed, because the accelerator was routed in the meantime or
    a shell is asked for, only these files are replaced. Shells that the older bundle has are kept
    if it is of the same accelerator. A folder with any file that does not belong to a bundle
    (``manifest.json``, ``splitjoin.*``, ``splitjoin_axi.*``) is refused.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    output : path-like
        The folder. Missing parent folders are created.
    shells : sequence of str
        Shells to be written beside the accelerator, of :data:`hdl.shells.names.SHELLS`.
    axi : AxiOptions or None
        Options of the AXI shell, if it is one of ``shells``. A shell that the older bundle has
        keeps its options.

    Returns
    -------
    dict
        The manifest.
    """
    check_shells(shells)
    axi = AxiOptions() if axi is None else axi
    if shells:
        axi.check(parameters)
    folder = Path(os.path.abspath(output))
    check_target(folder)
    manifest, texts = describe_bundle(parameters)
    older = read_manifest(folder / MANIFEST)
    chosen = dict.fromkeys(shells, axi)
    if older.get("hash") == manifest["hash"]:
        for shell, described in older.get("shells", {}).items():
            if shell in SHELLS:
                chosen.setdefault(shell, AxiOptions.from_manifest(described))
    for shell, options in chosen.items():
        files, ports = shell_files(parameters, manifest["hash"], options)
        texts |= dict(files.values())
        described = describe_shell(parameters, manifest["hash"], options, files, ports)
        manifest.setdefault("shells", {})[shell] = described
    texts[MANIFEST] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    changed = [name for name, text in texts.items() if not is_same(folder / name, text)]
    if not changed:
        return manifest
    if not {VERILOG, NETLIST} & set(changed) and is_same_accelerator(older, manifest):
        for name in changed:  # the manifest is the last one
            new = folder / f".{VERILOG}.{name}"
            new.write_text(texts[name], encoding="utf-8")
            new.replace(folder / name)
        return manifest

    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder)
    workplace = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=PARTIAL, dir=folder.parent))
    try:
        new = workplace / folder.name
        new.mkdir()
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
        replace_folder(new, folder, workplace / "older")
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    return manifest


def is_same(path, text):
    """Return whether the file at ``path`` exists and holds ``text``."""
    return path.is_file() and path.read_bytes() == text.encode()


def read_manifest(path):
    """Return the manifest at ``path``, or an empty one if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_same_accelerator(older, manifest):
    """Return whether two manifests differ at most in clock and shells."""
    rest = {"clock": None, "shells": None}
    return {**older, **rest} == {**manifest, **rest}
