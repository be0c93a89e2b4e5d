# SPDX-License-Identifier: Apache-2.0
"""Which device serves a query, and the bundles on this machine that it may be made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import hashlib
from importlib.util import find_spec
import json
import os
from pathlib import Path
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from host.devices.simulated import LIBRARY, is_usable, read_library
from host.errors import BuildError, FailureError, JoinError, ManifestError, MissingToolError
from host.files.atomic import file_digest, files_below, workplace
from host.installation import PRESETS, command, find_checkout
from host.protocol.manifest import Manifest, load_manifest
from host.query.deciding import GeneratedPredicate, predicate_for
from host.query.queries import OnFailure, Query

__all__ = [
    "CACHE_VARIABLE",
    "ChosenDevice",
    "DEVICE_VARIABLE",
    "SIMULATED",
    "SOFTWARE",
    "bundle_folders",
    "cache_folder",
    "choose_device",
    "default_bundle",
    "find_bundles",
    "known_accelerator",
    "library_folder",
    "operator_bundle",
    "prepare_folder",
    "source_hash",
    "suitable_engine",
]

# Choose the folder in which bundles and simulator libraries are kept.
#
# The folder is ``$SPLITJOIN_CACHE`` if that is set. Otherwise it is the ``build`` folder of the
# checkout, if the kit runs from a writable checkout. Otherwise it is the user's cache folder of
# the platform.

#: Environment variable that names the cache folder.
CACHE_VARIABLE = "SPLITJOIN_CACHE"


def cache_folder() -> Path:
    """Return the folder of all that is kept; it need not exist."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    build = _checkout_build()
    if build is not None and _can_be_written(build):
        return build
    return _user_cache()


def bundle_folders() -> list[Path]:
    """Return the folders that are searched for bundles; new bundles go to the first.

    There are two folders if the checkout cannot be written. Bundles that were built while it was
    still writable, as in a container image, are used from the second one.
    """
    places = [cache_folder()]
    build = _checkout_build()
    if build is not None and not os.environ.get(CACHE_VARIABLE) and build not in places:
        places.append(build)
    return [place / "bundles" for place in places]


def library_folder() -> Path:
    """Return the folder of compiled libraries, which are named by a hash of their sources."""
    return cache_folder() / "libraries"


def prepare_folder(folder: Path) -> Path:
    """Make ``folder`` if necessary, and return it if files can be created in it.

    Raises
    ------
    FailureError
        If the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error


def _unwritable(folder: Path, reason: str) -> FailureError:
    return FailureError(
        f"Nothing can be built: folder {str(folder)!r} cannot be written ({reason}); set "
        f"{CACHE_VARIABLE} to a folder that can be."
    )


def _checkout_build() -> Path | None:
    """Return the ``build`` folder of the checkout; None without a checkout."""
    root = find_checkout()
    return None if root is None else root / "build"


def _can_be_written(folder: Path) -> bool:
    return os.access(folder if folder.exists() else folder.parent, os.W_OK | os.X_OK)


def _user_cache() -> Path:
    try:
        from platformdirs import user_cache_path
    except ImportError as error:
        raise MissingToolError(
            "The Python package platformdirs",
            "to find the user's cache folder",
            f"install the kit with its extra 'host', or set {CACHE_VARIABLE} to a folder",
        ) from error
    folder = user_cache_path("splitjoin", appauthor=False)
    if not folder.is_absolute():
        raise _unwritable(folder, "this user has no home folder")
    return folder


# The bundles on this machine, and the default bundles, which are built when first needed.

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
    what: str = "the default bundle",
    quiet: bool = False,
) -> Path:
    """Return the default bundle of an engine; build it if necessary.

    The bundle's folder is named after a hash of the sources that made it, so that a bundle of an
    older kit is never used. A bundle whose library is damaged, or made for another processor, is
    built again. If two processes build it at once, the first to finish wins.

    Parameters
    ----------
    engine : str
        A key of :data:`~host.installation.PRESETS`; see
        :func:`suitable_engine`.
    directory : Path, optional
        Folder of the bundles; by default, the folders of :mod:`host.devices.bundles`.
    options : sequence of str
        Options of ``python -m sim build`` that override those of the preset.
    what : str
        What is built, for the progress and for errors.
    quiet : bool
        Whether to hide the progress of a build.

    Raises
    ------
    MissingToolError
        If there is no such bundle, and the packages that build it are not installed.
    FailureError
        If the bundle must be built, and its folder cannot be written.
    BuildError
        If the build fails.
    """
    preset = PRESETS[engine]
    name = "-".join([preset, *map(_as_name, options)])
    given = ["--preset", preset, *options]
    return _kept_bundle(name, given, shlex.join(given), what, directory, quiet=quiet)


def operator_bundle(
    document: Mapping[str, Any], directory: Path | None = None, *, quiet: bool = False
) -> Path:
    """Return the bundle of an operator's accelerator; build it if necessary.

    Parameters
    ----------
    document : mapping
        What the accelerator computes, as ``WindowedOperator.to_dict`` returns it.
    directory, quiet
        As for :func:`default_bundle`, which raises the same.
    """
    text = json.dumps(document, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    what = f"an accelerator for operator {document['name']!r}"
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "operator_of_data.py"
        description.write_text(_DESCRIPTION.format(text=text), "utf-8")
        given = ["--operator", str(description)]
        shown = "--operator DESCRIPTION.py"
        return _kept_bundle(f"operator-{digest}", given, shown, what, directory, quiet=quiet)


#: A Python file with an operator, as ``python -m sim build --operator`` takes it.
_DESCRIPTION = """\
import json

from host.operators.windowed import WindowedOperator

OPERATOR = WindowedOperator.from_dict(json.loads({text!r}))
"""


def _kept_bundle(
    name: str, given: list[str], shown: str, what: str, directory: Path | None, *, quiet: bool
) -> Path:
    """Return the bundle of a name that is here, or build it with options of ``sim build``.

    Messages show the options as ``shown``.
    """
    places = bundle_folders() if directory is None else [directory]
    sources = source_hash()
    if sources is not None:
        exact = f"{name}-{sources[:16]}"
        for place in places:
            if _is_ready(place / exact):
                return place / exact
    if sources is None or find_spec(LANGUAGE) is None:
        here = [folder for place in places for folder in place.glob(f"{name}-*")]
        for folder in sorted(here, key=lambda folder: -folder.stat().st_mtime):
            if folder.name.rpartition("-")[0] == name and _is_ready(folder):
                return folder
        building = f"{command('sim build')} {shown} --output {places[0] / name}-1"
        raise MissingToolError(
            f"The bundle builder (packages {', '.join(MAKERS)} and {LANGUAGE})",
            f"to build {what}",
            f"install the kit with its extra 'simulator', copy a bundle here that was built "
            f"elsewhere with `{building}`, or use the software engine, --device software:",
        )
    _build(given, places[0] / exact, what, quiet)
    return places[0] / exact


def _as_name(option: str) -> str:
    """Return an option, or its value, as a part of a folder's name."""
    plain = option.strip("-").replace(":", "-")
    if all(letter.isalnum() or letter in "-_." for letter in plain):
        return plain
    return hashlib.sha256(option.encode()).hexdigest()[:12]


def _build(options: list[str], bundle: Path, what: str, quiet: bool) -> None:
    """Build a bundle beside its final place, then move it there in one step."""
    for folder in (bundle.parent, library_folder()):
        prepare_folder(folder)
    try:
        with workplace(bundle.parent, bundle.name) as place:
            work = place / bundle.name
            call = [sys.executable, "-m", "sim", "build", *options, "--output", str(work)]
            if not quiet:
                print(f"Building {what}, once, in {bundle} …", file=sys.stderr)
            log = run_builder(call, what, quiet)
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


def run_builder(call: list[str], what: str, quiet: bool) -> str:
    """Run the builder, show its progress on standard error, and return that output."""
    paths = [path for path in sys.path if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    lines: list[str] = []
    with subprocess.Popen(
        call,
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
        raise BuildError(what, reason, log="".join(lines))
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


# Choose the engine of the simulated accelerator for a query.


def suitable_engine(query: Query) -> tuple[str, str]:
    """Choose ``"index"`` if a term bounds the difference on both sides, otherwise ``"scan"``.

    Returns the engine, and the reason for an explanation.

    What only a scan of several cores can do takes that one: ``"gated"`` if it needs gates or
    rounds. Without such a term, all tuples of the window are in one bucket. An index reads them one
    by one; a scan reads many at a time.
    """
    if query.on_failure is not OnFailure.RAISE or query.ordering.in_hardware:
        return "gated", "the default with gates of cores and with rounds"
    if query.elastic is not None:
        return "scan", "the default with several cores, for an elastic join"
    for term in sorted(query.terms, key=lambda term: not term.is_equality):
        if term.low is not None and term.high is not None:
            why = f"the default for a bounded term, {term}: an index reads only its buckets"
            return "index", why
    why = (
        "the default where no term is bounded on both sides: every tuple of the window is compared"
    )
    return "scan", why


# Choose the device of a query, and the simulated accelerator if that is asked for.

SOFTWARE = "software:"
"""Address of the software engine, which holds windows, times and values of any size."""

SIMULATED = "sim:"
"""Address of the simulated accelerator whose bundle the kit chooses, and builds if need be."""

DEVICE_VARIABLE = "SPLITJOIN_DEVICE"
"""Environment variable with the address of the device where none is named."""


@dataclass(frozen=True)
class ChosenDevice:
    """A device, and the reason for its choice.

    Parameters
    ----------
    uri : str
        Address of the device.
    reason : str
        Reason for the choice, for an explanation.
    """

    uri: str
    reason: str


def choose_device(
    device: str | None,
    query: Query,
    *,
    cause: str = "as asked for",
    needs: str | None = None,
    tuples: int = 0,
    build: bool = False,
    directory: Path | None = None,
) -> ChosenDevice:
    """Choose the device of a query: the one that is named, else the software engine.

    Where none is named, ``SPLITJOIN_DEVICE`` can name one. ``"sim:"`` is the smallest simulated
    accelerator that can serve the query: that of the default bundle, which is built when it is
    first needed, or of another bundle on this machine. If none suffices, one is built if ``build``
    allows it; otherwise, planning the query on the default bundle raises the error that says what
    to do. With ``build``, a condition that no term bounds gets an accelerator of its own.

    Parameters
    ----------
    device : str or None
        Address of the device; None if the user names none.
    query : Query
        The join.
    cause : str
        What names ``device``.
    needs : str, optional
        What the user asks for that only an accelerator has. Where none is named, the simulated one
        is chosen then; an elastic query always has such a need.
    tuples : int
        Largest number of tuples of a side in the window, if known. Ignored for a count-based
        window, whose size is known.
    build : bool
        Whether to build a larger bundle for ``"sim:"`` if necessary, or one that decides the
        condition of the query.
    directory : Path, optional
        Folder of the bundles.

    Raises
    ------
    MissingToolError, BuildError
        If a bundle must be built and cannot be.
    """
    if device is None:
        device = os.environ.get(DEVICE_VARIABLE, "").strip() or None
        cause = f"named by {DEVICE_VARIABLE}"
    if device is None:
        needs = needs or _need_of(query) or ("a bundle to build" if build else None)
        if needs is None:
            return ChosenDevice(
                SOFTWARE, "no accelerator is named, and the software engine is the quickest way"
            )
        device, cause = SIMULATED, f"{needs} needs an accelerator, and none is named"
    if device != SIMULATED:
        return ChosenDevice(device, cause)
    bundle, reason = _simulated(query, tuples, directory, build=build)
    return ChosenDevice(f"{SIMULATED}{bundle}", f"{cause}: {reason}")


def _need_of(query: Query) -> str | None:
    """Return what a query asks for that only an accelerator has."""
    if query.elastic is not None:
        return "an elastic join"
    if query.on_failure is not OnFailure.RAISE:
        return f"on_failure={query.on_failure.value!r}"
    return "an ordering that adapts itself" if query.ordering.hold is not None else None


def _simulated(
    query: Query, tuples: int, directory: Path | None, *, build: bool
) -> tuple[Path, str]:
    """Return the bundle of the simulated accelerator for a query, and why this one."""
    engine, why = suitable_engine(query)
    if query.rows is not None:
        tuples = query.rows
    own, what = _decidable(query), "the default bundle"
    options: tuple[str, ...] = ()
    if own is not None and build:
        options, what = own.options, f"an accelerator that finds pairs with {own.where}"
        why = f"for the condition, which no term bounds on both sides: it finds {own.where}"
    elif own is not None:
        why += "; build=True (--build) builds one that decides the condition itself"
    default = default_bundle(engine, directory, options=options, what=what)
    model = Manifest.load(default)
    fields = query.least_fields if own is None or not build else len(model.keys)
    needs = _Needs(model, max(tuples, 1), fields)
    if needs.met_by(model):
        return default, why
    others = [
        (manifest.capacity, len(manifest.keys), str(folder))
        for folder, manifest in find_bundles(directory)
        if needs.met_by(manifest) and is_usable(folder)
    ]
    if others:
        smallest = Path(min(others)[2])
        return smallest, f"{why}; {needs}, and this is the smallest that is here"
    if build:
        more = [*options, *needs.options()]
        larger = default_bundle(engine, directory, options=more, what=what)
        return larger, f"{why}; {needs}, so this was built"
    return default, why


def _decidable(query: Query) -> GeneratedPredicate | None:
    """Return the predicate of an accelerator that decides the condition of a query.

    None if there is no condition, if an accelerator for terms decides all that one can decide, or
    if a term is bounded on both sides: an index then finds few pairs for the host to look at, and
    reads only their buckets.
    """
    if query.where is None or query.where.rest is None:
        return None
    if any(term.low is not None and term.high is not None for term in query.terms):
        return None
    return None if predicate_for(query.where.rest) is None else predicate_for(query.where)


def known_accelerator(query: Query, directory: Path | None = None) -> Manifest | None:
    """Return what the default accelerator of a query is, by its newest bundle on this machine.

    Nothing is built: None if there is no such bundle.
    """
    preset = PRESETS[suitable_engine(query)[0]]
    for folder, manifest in find_bundles(directory):
        if folder.name.rpartition("-")[0] == preset:
            return manifest
    return None


@dataclass(frozen=True)
class _Needs:
    """The requirements of a query, in addition to a bundle that is like ``model``."""

    model: Manifest
    tuples: int
    fields: int

    def met_by(self, manifest: Manifest) -> bool:
        model = self.model
        return (
            manifest.kind == model.kind
            and set(model.operations) <= set(manifest.operations)
            and manifest.capacity >= self.tuples
            and len(manifest.keys) >= self.fields
            and manifest.timestamp_bits >= model.timestamp_bits
            and min(key.bits for key in manifest.keys) >= self._key_bits
        )

    @property
    def _key_bits(self) -> int:
        return min(key.bits for key in self.model.keys)

    def options(self) -> Sequence[str]:
        """Return the builder's options that override those of the preset."""
        options: list[str] = []
        if self.tuples > self.model.capacity:
            share = -(-self.tuples // self.model.storage.cores)
            options += ["--sub-window", str(1 << (share - 1).bit_length())]
        if self.fields > len(self.model.keys):
            for number in range(self.fields):
                options += ["--key", f"f{number}:{self._key_bits}"]
        return options

    def __str__(self) -> str:
        wanted = []
        if self.tuples > self.model.capacity:
            wanted.append(f"windows of {self.tuples:,} tuples")
        if self.fields > len(self.model.keys):
            wanted.append(f"{self.fields} key fields")
        return f"{' and '.join(wanted)} are more than the default has"
