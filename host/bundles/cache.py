# SPDX-License-Identifier: Apache-2.0
"""Choose the folder in which bundles and simulator libraries are kept.

The folder is ``$SPLITJOIN_CACHE`` if that is set. Otherwise it is the ``build`` folder of the
checkout, if the kit runs from a writable checkout. Otherwise it is the user's cache folder of the
platform.
"""

import os
from pathlib import Path
import tempfile

from host.errors import CacheError, MissingToolError
from host.installation import find_checkout

__all__ = ["CACHE_VARIABLE", "bundle_folders", "cache_folder", "library_folder", "prepare_folder"]

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
    CacheError
        If the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise CacheError(folder, error.strerror or str(error)) from error


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
        raise CacheError(folder, "this user has no home folder")
    return folder
