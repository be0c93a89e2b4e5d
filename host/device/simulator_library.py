# SPDX-License-Identifier: Apache-2.0
"""The simulator library of a bundle, found, checked and loaded."""

from collections import Counter
import ctypes
import hashlib
from pathlib import Path
import shlex
import threading

from host.errors import MissingManifestError, StaleManifestError
from host.manifest import Manifest

__all__ = ["LIBRARY", "Done", "load_library"]

#: The simulator library in a bundle's folder; `python -m sim build` puts it there.
LIBRARY = "splitjoin.so"


class Done(ctypes.Structure):
    """What one call of ``splitjoin_exchange`` did."""

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

#: Libraries of this process, by a hash of their contents; how many came from each path.
_loaded: dict[bytes, ctypes.CDLL] = {}
_loads: Counter[Path] = Counter()
_loading = threading.Lock()


def load_library(bundle: Path, manifest: Manifest) -> ctypes.CDLL:
    """Load the library of a bundle after checking that it belongs to it.

    A process that had loaded another library from the same place, before the bundle was replaced,
    gets the one that is there now.

    Parameters
    ----------
    bundle : Path
        Folder of the bundle, or a file in it.
    manifest : Manifest
        What is in it.

    Raises
    ------
    ManifestError
        If there is no library, or it was built from something else, or does not load.
    """
    folder = bundle if bundle.is_dir() else bundle.parent
    path = folder / LIBRARY
    remedy = f"build it with `python -m sim build {shlex.quote(str(folder))}`"
    foreign = f"has a simulator library that was built from something else; {remedy}"
    name = f"splitjoin-bundle:{manifest.hash}\0".encode()
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise MissingManifestError(folder, f"has no simulator library; {remedy}") from error
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
        for what, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, f"splitjoin_{what}")
            function.restype, function.argtypes = result, arguments
        _loaded[key] = library
    return library


def _unused_name(path: Path) -> str:
    """Return a spelling of ``path`` that this process has not loaded anything by.

    By a name that it knows, the dynamic loader gives what it loaded by that name, whatever the file
    has become.
    """
    _loads[path] += 1
    return f"{path.parent}/{'./' * (_loads[path] - 1)}{path.name}"
