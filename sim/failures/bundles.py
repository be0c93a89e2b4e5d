# SPDX-License-Identifier: Apache-2.0
"""Bundles whose cores fail, or bits flip, or neither; kept until what they are made of changes."""

from functools import cache
import hashlib
import inspect
import json
from pathlib import Path

from hdl.bundle import write_bundle
from host.devices.bundles import cache_folder
from sim.verilated.library import build_library

from .flips import write_flippable
from .injection import write_faulty

__all__ = ["built", "faulty", "flippable", "manifest_of"]

ROOT = Path(__file__).resolve().parents[2]


@cache
def sources(folder):
    """Return a hash of the sources in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".cpp", ".h", ".v"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def made_from(parameters):
    """Return hashes of everything that Verilog and libraries are made from."""
    own = Path(inspect.getfile(type(parameters.arrangement))).parent
    return [sources(folder) for folder in (ROOT / "hdl", ROOT / "sim", own)]


def manifest_of(bundle):
    """Return the manifest of a bundle, as JSON has it."""
    return json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))


def written(parameters, folder):
    """Return the bundle of some parameters, which need not have a library."""
    folder = folder or cache_folder() / "failures"
    name = hashlib.sha256(f"{parameters}{made_from(parameters)}".encode()).hexdigest()[:12]
    bundle = folder / name
    if not (bundle / "manifest.json").exists():
        write_bundle(parameters, bundle)
    return bundle


def built(parameters, report, folder=None):
    """Return the bundle of some parameters, with its library."""
    bundle = written(parameters, folder)
    if not (bundle / "splitjoin.so").exists():
        build_library(bundle, report=report)
    return bundle


def faulty(parameters, report, folder=None):
    """Return a bundle of some parameters whose cores can fail, with its library."""
    return changed(parameters, "faulty", write_faulty, report, folder)


def flippable(parameters, report, folder=None):
    """Return a bundle of some parameters in whose memories a bit can flip, with its library."""
    return changed(parameters, "flippable", write_flippable, report, folder)


def changed(parameters, name, write, report, folder):
    """Return a changed copy of the bundle of some parameters, with its library."""
    bundle = written(parameters, folder)
    copy = bundle.with_name(f"{bundle.name}-{name}")
    if not (copy / "splitjoin.so").exists():
        build_library(write(bundle, copy), plain=True, report=report)
    return copy
