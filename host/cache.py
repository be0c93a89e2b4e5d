# SPDX-License-Identifier: Apache-2.0
"""Where bundles and simulator libraries are kept: one folder for both, chosen here.

It is ``$SPLITJOIN_CACHE`` if that is set; else the ``build`` folder of the checkout, if the kit
runs from a checkout that can be written; else the user's cache folder, as the platform has it.
"""

import os
from pathlib import Path
import tempfile

from host.errors import CacheError, MissingToolError

__all__ = ["CACHE_VARIABLE", "bundle_folders", "library_folder", "prepare_folder"]

#: Environment variable that names the cache folder.
CACHE_VARIABLE = "SPLITJOIN_CACHE"


def bundle_folders() -> list[Path]:
    """Return the folders that bundles are looked for in; new ones go to the first.

    There are two if the checkout cannot be written: bundles that were built when it still could
    be, as in an image of a container, are used from where they are.
    """
    places = [_cache_folder()]
    build = _checkout_build()
    if build is not None and not os.environ.get(CACHE_VARIABLE) and build not in places:
        places.append(build)
    return [place / "bundles" for place in places]


def library_folder() -> Path:
    """Return the folder of compiled libraries, by what they are made from."""
    return _cache_folder() / "libraries"


def prepare_folder(folder: Path) -> Path:
    """Make ``folder`` if need be, and return it if files can be made in it.

    Raises
    ------
    CacheError
        If they cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise CacheError(folder, error.strerror or str(error)) from error


def _cache_folder() -> Path:
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    build = _checkout_build()
    if build is not None and _can_be_written(build):
        return build
    return _user_cache()


def _checkout_build() -> Path | None:
    """Return the folder of built things of the checkout that this file is in, if it is in one."""
    root = Path(__file__).resolve().parent.parent
    parts = ("pyproject.toml", "hdl", "sim")  # an installed kit lies in a folder without the first
    return root / "build" if all((root / part).exists() for part in parts) else None


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
