# SPDX-License-Identifier: Apache-2.0
"""The base classes of all errors of the kit."""

from typing import Any

__all__ = ["FailureError", "JoinError", "UsageError"]


def _rebuild(cls: type["JoinError"], args: tuple[Any, ...], state: dict[str, Any]) -> "JoinError":
    """Recreate an unpickled error without calling its own ``__init__``."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class JoinError(Exception):
    """Base of all errors of the kit.

    Attributes
    ----------
    exit_code : int
        Exit code of a command that stops with this error.
    """

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class UsageError(JoinError):
    """The request, or the data it names, must change."""

    exit_code = 2


class FailureError(JoinError):
    """The request was well formed, but the run failed."""

    exit_code = 1
