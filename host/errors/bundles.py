# SPDX-License-Identifier: Apache-2.0
"""Errors of bundles that cannot be used or built."""

from host.errors.base import FailureError, UsageError

__all__ = [
    "BuildError",
    "CacheError",
    "ForeignLibraryError",
    "ForeignManifestError",
    "ManifestError",
    "MissingManifestError",
    "MissingToolError",
    "StaleManifestError",
]


class ManifestError(UsageError):
    """A bundle cannot be used; its subclasses say why.

    Parameters
    ----------
    path : object
        Path of the bundle or of its manifest file.
    reason : str
        What is wrong with the bundle, and what to do.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(f"Bundle {self.path!r} {reason}.")


class MissingManifestError(ManifestError):
    """There is no bundle at this path, or a part of the bundle is missing."""


class ForeignManifestError(ManifestError):
    """The file is not a manifest of this kit, or has a format that this version does not read."""


class StaleManifestError(ManifestError):
    """The parts of the bundle do not belong together: one was changed after it was generated."""


class ForeignLibraryError(ManifestError):
    """The simulator library was compiled for another processor."""


class CacheError(FailureError):
    """The folder for bundles and simulator libraries cannot be written.

    Parameters
    ----------
    folder : object
        The folder.
    reason : str
        Why it cannot be written.
    """

    def __init__(self, folder: object, reason: str) -> None:
        self.folder = str(folder)
        self.reason = reason
        super().__init__(
            f"Nothing can be built: folder {self.folder!r} cannot be written ({reason}); set "
            f"SPLITJOIN_CACHE to a folder that can be."
        )


class BuildError(FailureError):
    """Generating a bundle or compiling its simulator library did not finish.

    Parameters
    ----------
    what : str
        What was being built.
    reason : str
        Why it stopped.
    log : str
        Output of the tool that stopped.
    """

    def __init__(self, what: str, reason: str, *, log: str = "") -> None:
        self.what = what
        self.reason = reason
        self.log = log
        super().__init__(f"Building {what} failed: {reason}.")


class MissingToolError(FailureError):
    """A program that the request needs is not installed.

    Parameters
    ----------
    tool : str
        Name of the program.
    purpose : str
        What the program is needed for.
    remedy : str
        How to get the program.
    """

    def __init__(self, tool: str, purpose: str, remedy: str) -> None:
        self.tool = tool
        self.purpose = purpose
        self.remedy = remedy
        super().__init__(f"{tool} is needed {purpose}, but was not found; {remedy}.")
