# SPDX-License-Identifier: Apache-2.0
"""The simulator library of a bundle: Verilog, Verilator, shared object, cached by content.

The cache is ``$SPLITJOIN_CACHE``, or else ``build/cache`` of this checkout. A library is found
there by a hash of everything it is made from: the Verilog, the manifest's hash, the harness, all
options and the versions of the tools. Several processes may build at once: the first locks the
entry, the others wait for it. The lock is the operating system's, so it ends with its process; a
build that was killed leaves a folder that the next one removes, and never half a library.

In the bundle, ``splitjoin.so`` appears in one step, and names the bundle that it was built from.
"""

from contextlib import contextmanager
import fcntl
import hashlib
import os
from pathlib import Path
import shutil
import tempfile
import time

from host.device.simulator_library import LIBRARY
from host.errors import BuildError
from host.manifest import Manifest

from .model import compile_model, compile_runtime, recipe, runtime_recipe
from .toolchain import Heartbeat, find_toolchain

__all__ = ["build_library", "cache_folder"]


def cache_folder():
    """Return where libraries are kept."""
    if folder := os.environ.get("SPLITJOIN_CACHE"):
        return Path(folder).absolute()
    return Path(__file__).parents[1] / "build" / "cache"


def key_of(tools, manifest, verilog):
    """Return the hash of everything that a library is made from."""
    text = verilog.read_text(encoding="utf-8")
    return hash_of([text, *recipe(manifest), *runtime_recipe(), *tools.versions()])


def hash_of(parts):
    """Return a hash of some texts, one after another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:32]


@contextmanager
def locked(path, report):
    """Hold the lock file ``path``, which no process keeps beyond its own end."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process builds this library: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def publish(library, place):
    """Put a copy of ``library`` at ``place`` in one step."""
    handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    os.close(handle)
    try:
        shutil.copyfile(library, temporary)
        os.chmod(temporary, 0o755)
        os.replace(temporary, place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cached(name, make, *, report):
    """Return a file of the cache, made if it is not there yet.

    Parameters
    ----------
    name : str
        Its name, which tells everything that it is made from.
    make : callable
        Makes it in an empty folder, with a log file, and returns its place.
    report : callable
        Receives lines about the progress.
    """
    folder, key = cache_folder(), name.partition(".")[0]
    entry, log = folder / name, folder / f"{key}.log"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{key}.lock", report):
        if entry.is_file():
            return entry
        for leftover in folder.glob(f"{key}.build-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        workplace = Path(tempfile.mkdtemp(prefix=f"{key}.build-", dir=folder))
        try:
            publish(make(workplace, log), entry)
            log.unlink(missing_ok=True)
        finally:
            shutil.rmtree(workplace, ignore_errors=True)
    return entry


def cached_runtime(tools, *, what, report):
    """Return Verilator's own part of all libraries from the cache, built if it is not there yet."""
    key = hash_of([*runtime_recipe(), *tools.versions()])
    heartbeat = Heartbeat(report)
    return cached(
        f"runtime-{key}.o",
        lambda place, log: compile_runtime(tools, place, what=what, log=log, heartbeat=heartbeat),
        report=report,
    )


def cached_library(tools, manifest, *, what, report):
    """Return the library from the cache, built if it is not there yet."""
    verilog = manifest.path / manifest.files["verilog"]

    def make(place, log):
        report(f"{what}: building the simulator library")
        runtime = cached_runtime(tools, what=what, report=report)
        return compile_model(
            tools, verilog, manifest, runtime, place,
            what=what, log=log, heartbeat=Heartbeat(report),
        )  # fmt: skip

    return cached(f"{key_of(tools, manifest, verilog)}.so", make, report=report)


def build_library(bundle, *, report=lambda text: None):
    """Build the simulator library of a bundle, or take it from the cache.

    Parameters
    ----------
    bundle : path-like
        Folder that ``python -m hdl generate`` wrote.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    Path
        The library in the bundle.

    Raises
    ------
    ManifestError
        If there is no such bundle, or its parts do not belong together.
    MissingToolError
        If Verilator or the compiler is not installed.
    BuildError
        If a tool fails.
    """
    bundle = Path(os.path.abspath(bundle))
    manifest = Manifest.load(bundle)
    what = f"{bundle.name} ({manifest.storage.cores} cores)"
    tools = find_toolchain()
    started = time.monotonic()
    try:
        entry = cached_library(tools, manifest, what=what, report=report)
        place = bundle / LIBRARY
        if not (place.is_file() and place.read_bytes() == entry.read_bytes()):
            publish(entry, place)
    except OSError as error:
        raise BuildError(what, str(error)) from error
    report(f"{what}: the simulator library is ready ({time.monotonic() - started:.1f} s)")
    return place
