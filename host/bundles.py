# SPDX-License-Identifier: Apache-2.0
"""The bundles on this machine, and the default one, built when it is first needed."""

from collections.abc import Sequence
import hashlib
from importlib.util import find_spec
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

from host.device.simulator_library import LIBRARY
from host.errors import BuildError, JoinError, MissingToolError
from host.manifest import Manifest
from host.presets import PRESETS

__all__ = ["bundle_directory", "default_bundle", "find_bundles", "source_hash"]

#: Packages that a bundle is made by.
MAKERS = ("hdl", "sim")

_SOURCES = {".py", ".cpp", ".h", ".vlt", ".v"}


def bundle_directory() -> Path:
    """Return where bundles are kept: the checkout's ``build`` folder, else the user's cache."""
    root = Path(__file__).resolve().parent.parent
    if all((root / maker).is_dir() for maker in MAKERS):
        return root / "build" / "bundles"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "splitjoin" / "bundles"


def source_hash() -> str | None:
    """Return a hash of the sources that a bundle is made by; None if they are not here.

    They are found without being imported: nothing here needs the hardware language.
    """
    digest = hashlib.sha256()
    for maker in MAKERS:
        spec = find_spec(maker)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not folders:
            return None
        folder = Path(folders[0])
        for file in sorted(folder.rglob("*")):
            if file.suffix in _SOURCES and file.is_file():
                digest.update(f"{maker}/{file.relative_to(folder)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def find_bundles(directory: Path | None = None) -> list[tuple[Path, Manifest]]:
    """Return the usable bundles under ``directory``, newest first."""
    place = bundle_directory() if directory is None else directory
    found = []
    for folder in place.glob("*/manifest.json"):
        try:
            found.append((folder.parent, Manifest.load(folder.parent)))
        except JoinError:
            continue  # a bundle that cannot be used is not offered
    return sorted(found, key=lambda bundle: -bundle[0].stat().st_mtime)


def default_bundle(
    engine: str = "scan",
    directory: Path | None = None,
    *,
    options: Sequence[str] = (),
    quiet: bool = False,
) -> Path:
    """Return the bundle of the default device with an engine, building it first if need be.

    Its folder is named after the sources that made it, so a bundle of an older kit is never taken
    for the one of this. Two processes may build at once: the first to finish wins.

    Parameters
    ----------
    engine : str
        One of :data:`~host.presets.PRESETS`; see :func:`host.engine_choice.suitable_engine`.
    directory : Path, optional
        Where bundles are kept; default :func:`bundle_directory`.
    options : sequence of str
        Of ``python -m sim build``, over those of the preset.
    quiet : bool
        Whether to keep the progress of a build to itself.

    Raises
    ------
    MissingToolError
        If there is none, and the packages that build it are not installed.
    BuildError
        If building it fails.
    """
    place = bundle_directory() if directory is None else directory
    preset = PRESETS[engine]
    name = "-".join([preset, *(option.strip("-").replace(":", "-") for option in options)])
    sources = source_hash()
    if sources is None:
        for folder, _ in find_bundles(place):
            if folder.name.rpartition("-")[0] == name and (folder / LIBRARY).is_file():
                return folder
        raise MissingToolError(
            "The bundle builder (packages hdl and sim)",
            "to build the default bundle",
            f"install the kit with its extra 'sim', copy a built bundle to {place / name}-1, or "
            f"name a device, such as --device software:",
        )
    bundle = place / f"{name}-{sources[:16]}"
    if not (bundle / LIBRARY).is_file():
        _build(["--preset", preset, *options], bundle, quiet)
    return bundle


def _build(options: list[str], bundle: Path, quiet: bool) -> None:
    """Build beside the final place, then move there in one step."""
    bundle.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bundle.parent, prefix=".building-") as temporary:
        work = Path(temporary) / bundle.name
        command = [sys.executable, "-m", "sim", "build", *options, "--output", str(work)]
        if not quiet:
            print(f"Building the default bundle, once, in {bundle} …", file=sys.stderr)
        log = run_builder(command, quiet)
        if not (work / LIBRARY).is_file():
            raise BuildError("the default bundle", f"it has no {LIBRARY}", log=log)
        if bundle.exists():
            # Left by a build that was cut short, or made by another process meanwhile.
            if (bundle / LIBRARY).is_file():
                return
            shutil.rmtree(bundle)
        try:
            work.rename(bundle)
        except OSError:
            if not (bundle / LIBRARY).is_file():
                raise


def run_builder(command: list[str], quiet: bool) -> str:
    """Run the builder; its progress goes to standard error, line by line."""
    paths = [path for path in sys.path if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,  # where the bundle is built, which it does not stay
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line)
                if not quiet:
                    sys.stderr.write(line)
        except BaseException:
            process.terminate()
            raise
    log = "".join(lines)
    if process.returncode < 0:
        raise BuildError(
            "the default bundle", f"it was killed (signal {-process.returncode})", log=log
        )
    if process.returncode:
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no message")
        raise BuildError("the default bundle", last.rstrip("."), log=log)
    return log
