# SPDX-License-Identifier: Apache-2.0
"""The bundles on this machine, and the default bundles, which are built when first needed."""

from collections.abc import Sequence
import hashlib
from importlib.util import find_spec
import os
from pathlib import Path
import shutil
import subprocess
import sys

from host.bundles.cache import bundle_folders, library_folder, prepare_folder
from host.device.simulator_library import LIBRARY, is_usable, read_library
from host.errors import BuildError, JoinError, ManifestError, MissingToolError
from host.files.atomic import workplace
from host.files.source_digest import file_digest, files_below
from host.manifest import Manifest, load_manifest
from host.presets import PRESETS

__all__ = ["default_bundle", "find_bundles", "source_hash"]

#: Packages whose sources decide what a bundle contains.
MAKERS = ("hdl", "sim")

#: Package of the hardware language, which a maker imports first of all. An installed kit has the
#: makers even if it was installed without it.
LANGUAGE = "amaranth"

#: Beginning of an error message of the builder.
COMPLAINT = "python -m sim: "

_SOURCES = {".py", ".cpp", ".h", ".vlt", ".v"}

#: Folder of the routing reports, beside a maker. A bundle's manifest names one of them.
_REPORTS = Path("docs") / "routing"


def source_hash() -> str | None:
    """Return a hash of all sources of a bundle; None if the packages that make it are missing.

    Sources are found without being imported, so the hardware language is not needed. A new routing
    report requires a new bundle, but not a new library.
    """
    digest = hashlib.sha256()
    for maker in MAKERS:
        spec = find_spec(maker)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not folders:
            return None
        folder = Path(folders[0])
        for file in files_below(folder, _SOURCES):
            digest.update(f"{maker}{file.path[len(str(folder)) :]}\0".encode())
            digest.update(file_digest(file))
        for report in sorted((folder.parent / _REPORTS).glob("*.json")):
            digest.update(file_digest(report))
    return digest.hexdigest()


def find_bundles(directory: Path | None = None) -> list[tuple[Path, Manifest]]:
    """Return the usable bundles in ``directory``, or on this machine, newest first."""
    found = []
    for place in bundle_folders() if directory is None else [directory]:
        for manifest in place.glob("*/manifest.json"):
            folder = manifest.parent
            try:
                found.append((folder.stat().st_mtime, folder, Manifest.load(folder)))
            except (JoinError, OSError):
                continue  # skip a bundle that is unusable or was just removed
    found.sort(key=lambda bundle: -bundle[0])
    return [(folder, manifest) for _, folder, manifest in found]


def default_bundle(
    engine: str = "scan",
    directory: Path | None = None,
    *,
    options: Sequence[str] = (),
    quiet: bool = False,
) -> Path:
    """Return the default bundle of an engine; build it if necessary.

    The bundle's folder is named after a hash of the sources that made it, so that a bundle of an
    older kit is never used. A bundle whose library is damaged, or made for another processor, is
    built again. If two processes build it at once, the first to finish wins.

    Parameters
    ----------
    engine : str
        A key of :data:`~host.presets.PRESETS`; see
        :func:`host.hardware.engine_choice.suitable_engine`.
    directory : Path, optional
        Folder of the bundles; by default, the folders of :mod:`host.bundles.cache`.
    options : sequence of str
        Options of ``python -m sim build`` that override those of the preset.
    quiet : bool
        Whether to hide the progress of a build.

    Raises
    ------
    MissingToolError
        If there is no such bundle, and the packages that build it are not installed.
    CacheError
        If the bundle must be built, and its folder cannot be written.
    BuildError
        If the build fails.
    """
    places = bundle_folders() if directory is None else [directory]
    preset = PRESETS[engine]
    name = "-".join([preset, *(option.strip("-").replace(":", "-") for option in options)])
    sources = source_hash()
    if sources is not None:
        exact = f"{name}-{sources[:16]}"
        for place in places:
            if _is_ready(place / exact):
                return place / exact
    if sources is None or find_spec(LANGUAGE) is None:
        for folder, _ in find_bundles(directory):
            if folder.name.rpartition("-")[0] == name and is_usable(folder):
                return folder
        raise MissingToolError(
            f"The bundle builder (packages {', '.join(MAKERS)} and {LANGUAGE})",
            "to build the default bundle",
            f"install the kit with its extra 'simulator', copy a built bundle to "
            f"{places[0] / name}-1, or name a device, such as --device software:",
        )
    _build(["--preset", preset, *options], places[0] / exact, quiet)
    return places[0] / exact


def _build(options: list[str], bundle: Path, quiet: bool) -> None:
    """Build a bundle beside its final place, then move it there in one step."""
    for folder in (bundle.parent, library_folder()):
        prepare_folder(folder)
    what = "the default bundle"
    try:
        with workplace(bundle.parent, bundle.name) as place:
            work = place / bundle.name
            command = [sys.executable, "-m", "sim", "build", *options, "--output", str(work)]
            if not quiet:
                print(f"Building {what}, once, in {bundle} …", file=sys.stderr)
            log = run_builder(command, quiet)
            if not (work / LIBRARY).is_file():
                raise BuildError(what, f"it has no {LIBRARY}", log=log)
            _move(work, bundle)
    except OSError as error:
        raise BuildError(what, f"{error.strerror or error} ({bundle.parent})") from error


def _move(work: Path, bundle: Path) -> None:
    """Move a built bundle to its place, unless another process has put one there meanwhile."""
    if bundle.exists():
        if _is_ready(bundle):
            return
        shutil.rmtree(bundle)  # a part is missing, damaged or for another processor
    try:
        work.rename(bundle)
    except OSError:
        if not _is_ready(bundle):
            raise


def _is_ready(bundle: Path) -> bool:
    """Return whether all parts of a bundle exist and can be used on this machine."""
    try:
        load_manifest(bundle)
        read_library(bundle)
    except ManifestError:
        return False
    return True


def run_builder(command: list[str], quiet: bool) -> str:
    """Run the builder, show its progress on standard error, and return that output."""
    paths = [path for path in sys.path if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,  # the bundle's path, which is temporary
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
    if process.returncode:
        reason = _reason(process.returncode, lines)
        raise BuildError("the default bundle", reason, log="".join(lines))
    return "".join(lines)


def _reason(code: int, lines: list[str]) -> str:
    """Return in one line why the builder stopped: its own message and the last line of its tool."""
    if code < 0:
        return f"it was killed (signal {-code})"
    said = [text for line in lines if (text := line.strip().rstrip("."))]
    own = next((n for n, text in enumerate(said) if text.startswith(COMPLAINT)), None)
    if own is None:
        words = said[-1:]
    else:
        words = [said[own].removeprefix(COMPLAINT), *said[own + 1 :][-1:]]
    return ": ".join(words) or f"the builder ended with code {code} and no message"
