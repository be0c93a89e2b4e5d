# SPDX-License-Identifier: Apache-2.0
"""Build the simulator library of a bundle, and cache it by content.

A library is a shared object that Verilator and a C++ compiler make of the bundle's netlist, after
:mod:`sim.rewriter` has rewritten it. A *plain* library is made of the bundle's own Verilog. Both
behave alike in every cycle; before a library is used, both run side by side
(:mod:`sim.verilated.lockstep`).

:mod:`host.devices.bundles` says where the cache is. The name of an entry is a hash of everything
that the library is made from: the bundle's text, the manifest's hash, the harness, all options, the
versions of the tools and the kind of machine. Several processes may ask for the same library at
once: the first one locks the entry and builds it, the others wait. The lock belongs to the
operating system and ends with its process. A build that was killed leaves a temporary folder, which
the next build removes; an incomplete library never appears in the cache. An entry that no longer
agrees with its checksum is built again.

In the bundle, ``splitjoin.so`` appears in one step, with a checksum beside it. The library contains
the hash of the bundle that it was built from.
"""

from contextlib import contextmanager
import fcntl
import hashlib
import os
from pathlib import Path
import platform
import time

from host.devices.bundles import library_folder, prepare_folder
from host.devices.simulated import LIBRARY
from host.errors import BuildError, ManifestError
from host.files.atomic import is_intact, publish, workplace
from host.protocol.manifest import load_manifest
from sim.rewriter import UnknownNetlist

from .lockstep import compare_in_lockstep
from .model import (
    UNOPTIMIZED,
    accelerator_harness,
    compile_model,
    compile_runtime,
    recipe,
    runtime_recipe,
    simulated_text,
)
from .toolchain import Heartbeat, find_toolchain

__all__ = ["build_library", "cached", "cached_runtime", "hash_of", "key_of", "made_with"]

#: Longest wait for another process that builds the same library, and the pause between two attempts
#: to get its lock.
WAIT_SECONDS = 1800
PAUSE_SECONDS = 0.1


def key_of(tools, harness, text):
    """Return the hash of everything that a library is made from."""
    return hash_of([text, *recipe(harness), *runtime_recipe(), *made_with(tools)])


def part_of(manifest, part):
    """Return the text of a part of a bundle after checking its checksum; None if it has none."""
    if part not in manifest.files:
        return None
    path = manifest.path / manifest.files[part]
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ManifestError(
            manifest.path, f"lacks its {part}, {path.name!r}; generate it again"
        ) from error
    recorded = manifest.values.get("checksums", {}).get(part)
    if recorded is not None and recorded != hashlib.sha256(text.encode()).hexdigest():
        raise ManifestError(
            manifest.path, f"was changed after it was generated ({path.name}); generate it again"
        )
    return text


def made_with(tools):
    """Return texts that identify the tools and the kind of machine."""
    return [*tools.versions(), platform.machine()]


def hash_of(parts):
    """Return one hash of several texts, which depends on their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:32]


@contextmanager
def locked(path, report):
    """Hold an exclusive lock on the file ``path``, which no process keeps beyond its own end."""
    with path.open("a") as file:
        wait_for_lock(file, report)
        yield


def wait_for_lock(file, report):
    """Lock an open file; wait while another process holds the lock."""
    heartbeat, deadline = Heartbeat(report), time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise BuildError(
                    "the simulator library",
                    f"another process has been building the same for {WAIT_SECONDS} s; end the "
                    f"process that holds {file.name!r}",
                ) from None
        heartbeat.beat("another process builds this library: waiting for it")
        time.sleep(PAUSE_SECONDS)


def cached(name, make, *, report):
    """Return a file from the cache; make it first if it is missing or damaged.

    Parameters
    ----------
    name : str
        Name of the file, which identifies everything that the file is made from.
    make : callable
        Called with an empty folder and the path of a log file; makes the file and returns its path.
    report : callable
        Receives lines of text about the progress.

    Raises
    ------
    FailureError
        If the cache cannot be written.
    """
    folder, key = prepare_folder(library_folder()), name.partition(".")[0]
    entry, log = folder / name, folder / f"{key}.log"
    with locked(folder / f"{key}.lock", report):
        if is_intact(entry):
            return entry
        if entry.exists():
            report(f"{entry} is damaged: it is built again")
        with workplace(folder, key) as place:
            publish(make(place, log), entry)
        log.unlink(missing_ok=True)
    return entry


def cached_runtime(tools, *, what, report):
    """Return Verilator's run-time code as an object file from the cache; build it if necessary."""
    key = hash_of([*runtime_recipe(), *made_with(tools)])
    heartbeat = Heartbeat(report)
    return cached(
        f"runtime-{key}.o",
        lambda place, log: compile_runtime(tools, place, what=what, log=log, heartbeat=heartbeat),
        report=report,
    )


def cached_library(tools, manifest, *, plain, what, report):
    """Return a library from the cache; build it if necessary."""
    netlist = None if plain else part_of(manifest, "netlist")
    source = part_of(manifest, "verilog") if netlist is None else netlist
    harness = accelerator_harness(manifest)

    def make(place, log):
        report(f"{what}: building the simulator library")
        runtime = cached_runtime(tools, what=what, report=report)
        shipped = part_of(manifest, "verilog")
        text = shipped
        if netlist is None and not plain:
            report(f"{what}: simulated slowly, as its Verilog is; the bundle has no netlist")
        if netlist is not None:
            try:
                text = simulated_text(netlist)
            except UnknownNetlist as error:
                report(f"{what}: simulated slowly, as its Verilog is; the netlist has {error}")
        options = {"what": what, "log": log, "heartbeat": Heartbeat(report)}
        library = compile_model(tools, text, harness, runtime, place, **options)
        if text is not shipped:
            aside = place / "shipped"
            aside.mkdir()
            other = compile_model(
                tools, shipped, harness, runtime, aside, levels=UNOPTIMIZED, **options
            )
            compare_in_lockstep(library, other, manifest, what=what)
        return library

    return cached(f"{key_of(tools, harness, source)}.so", make, report=report)


def build_library(bundle, *, plain=False, report=lambda text: None):
    """Build the simulator library of a bundle, or take it from the cache.

    Parameters
    ----------
    bundle : path-like
        Folder that ``python -m hdl generate`` wrote.
    plain : bool
        Whether to compile the bundle's Verilog unchanged. The library then simulates more slowly,
        and behaves the same.
    report : callable
        Receives lines of text about the progress.

    Returns
    -------
    Path
        The library's place in the bundle.

    Raises
    ------
    ManifestError
        If there is no such bundle, or its parts do not belong together.
    MissingToolError
        If Verilator or the compiler is not installed.
    FailureError
        If the cache, or the bundle's folder, cannot be written.
    BuildError
        If a tool fails.
    """
    bundle = Path(os.path.abspath(bundle))
    manifest = load_manifest(bundle)
    what = f"{bundle.name} (cores: {manifest.cores})"
    tools = find_toolchain()
    place = bundle / LIBRARY
    if not is_intact(place):
        prepare_folder(bundle)
    started = time.monotonic()
    try:
        entry = cached_library(tools, manifest, plain=plain, what=what, report=report)
        if not (is_intact(place) and place.read_bytes() == entry.read_bytes()):
            publish(entry, place)
    except OSError as error:
        raise BuildError(what, str(error)) from error
    report(f"{what}: the simulator library is ready ({time.monotonic() - started:.1f} s)")
    return place
