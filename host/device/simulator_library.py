# SPDX-License-Identifier: Apache-2.0
"""Find, check and load the simulator library of a bundle."""

from collections import Counter
import ctypes
import hashlib
from pathlib import Path
import shlex
import threading

from host.device.processor import processor_of, this_processor
from host.errors import (
    ForeignLibraryError,
    ManifestError,
    MissingManifestError,
    StaleManifestError,
)
from host.files.checksum import checksum_file, matches
from host.installation import command
from host.manifest import BundleManifest

__all__ = ["LIBRARY", "Done", "is_usable", "load_library", "read_library"]

#: The simulator library in a bundle's folder; `python -m sim build` puts it there.
LIBRARY = "splitjoin.so"


class Done(ctypes.Structure):
    """Result of one call of ``splitjoin_exchange``."""

    _fields_ = [
        ("accepted", ctypes.c_uint64),
        ("produced", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
    ]


_PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "create": (ctypes.c_void_p, [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32]),
    "destroy": (None, [ctypes.c_void_p]),
    "reset": (None, [ctypes.c_void_p]),
    "cycle": (ctypes.c_uint64, [ctypes.c_void_p]),
    "counter": (ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_uint32]),
    "exchange": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
}

#: Functions of accelerators whose windows are in external memory.
_MEMORY_PROTOTYPES: dict[str, tuple[type | None, list[type]]] = {
    "memory": (
        None,
        [
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_uint32,
            ctypes.c_uint32,
        ],
    ),
}

#: Libraries of this process by a hash of their contents, and the number of loads from each path.
_loaded: dict[bytes, ctypes.CDLL] = {}
_loads: Counter[Path] = Counter()
_loading = threading.Lock()


def read_library(folder: Path) -> bytes:
    """Return the contents of a bundle's simulator library if it can be loaded on this machine.

    Nothing is loaded, because loading a damaged library would end the process.

    Parameters
    ----------
    folder : Path
        Folder of the bundle.

    Raises
    ------
    ManifestError
        If the library is missing, damaged, or made for another processor.
    """
    path = folder / LIBRARY
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise MissingManifestError(
            folder, f"has no simulator library; {_remedy(folder)}"
        ) from error
    if not matches(contents, path):
        raise StaleManifestError(
            folder,
            f"has a simulator library that is damaged, as it differs from its checksum in "
            f"{checksum_file(path).name!r}; {_remedy(folder)}",
        )
    processor, here = processor_of(contents), this_processor()
    if processor and here and processor != here:
        raise ForeignLibraryError(
            folder,
            f"has a simulator library for another processor: it is for {processor}, and this "
            f"machine is {here}; {_remedy(folder)} on this machine",
        )
    return contents


def is_usable(folder: Path) -> bool:
    """Return whether a bundle has a simulator library that can be loaded on this machine."""
    try:
        read_library(folder)
    except ManifestError:
        return False
    return True


def load_library(bundle: Path, manifest: BundleManifest) -> ctypes.CDLL:
    """Load the library of a bundle after checking that it belongs to the bundle.

    If the bundle was replaced after this process had loaded its library, the new library is loaded
    as well.

    Parameters
    ----------
    bundle : Path
        Folder of the bundle, or a file in it.
    manifest : BundleManifest
        Manifest of the bundle.

    Raises
    ------
    ManifestError
        If the library is missing, was built from another bundle, or cannot be loaded.
    """
    folder = bundle if bundle.is_dir() else bundle.parent
    path = folder / LIBRARY
    remedy = _remedy(folder)
    foreign = f"has a simulator library that was built from something else; {remedy}"
    name = f"splitjoin-bundle:{manifest.hash}\0".encode()
    contents = read_library(folder)
    if name not in contents:
        raise StaleManifestError(folder, foreign)
    key = hashlib.sha256(contents).digest()
    with _loading:
        if key in _loaded:
            return _loaded[key]
        try:
            library = ctypes.CDLL(_unused_name(path))
        except OSError as error:
            raise StaleManifestError(
                folder, f"has a simulator library that does not load here ({error}); {remedy}"
            ) from error
        # The file may have been replaced since it was read.
        if (ctypes.c_char * len(name)).in_dll(library, "splitjoin_bundle").raw != name:
            raise StaleManifestError(folder, foreign)
        more = _MEMORY_PROTOTYPES if manifest.memory else {}
        for what, (result, arguments) in {**_PROTOTYPES, **more}.items():
            function = getattr(library, f"splitjoin_{what}")
            function.restype, function.argtypes = result, arguments
        _loaded[key] = library
    return library


def _remedy(folder: Path) -> str:
    return f"build it with `{command(f'sim build {shlex.quote(str(folder))}')}`"


def _unused_name(path: Path) -> str:
    """Return a spelling of ``path`` under which this process has not loaded a library.

    For a known name, the dynamic loader returns the library that it loaded before, even if the file
    has changed since.
    """
    _loads[path] += 1
    return f"{path.parent}/{'./' * (_loads[path] - 1)}{path.name}"
