# SPDX-License-Identifier: Apache-2.0
"""What the Java side of Spark says of a failure: the chain of causes, and the file they name."""

from dataclasses import dataclass
import re
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError

__all__ = ["JvmCause", "cause_of", "jvm_causes", "unread_file"]

_MOST = 20
"""Causes that are followed; a chain could be a circle."""

_UNREAD = re.compile(
    r"\[FAILED_READ_FILE[^]]*].*? reading file (?P<file>.+?)\.?"
    r"(?:\s+(?:SQLSTATE|Could not read|Data type mismatch|File does not|The file system)|\s*$)"
)
"""The file may have spaces in its name, and Spark's hint or code may stand behind it."""

_HEADING = re.compile(r"^(?:Caused by: |: )?(?P<name>(?:[\w$]+\.)+[\w$]+): ?(?P<message>.*)$")


@dataclass(frozen=True)
class JvmCause:
    """One exception of the chain.

    Parameters
    ----------
    name : str
        Its class.
    message : str
        What it says; may be empty.
    """

    name: str
    message: str

    def __str__(self) -> str:
        if self.message.startswith("["):
            return self.message  # a condition of Spark, which says more than the class
        kind = self.name.rpartition(".")[2]
        return f"{kind}: {self.message}" if self.message else kind


def jvm_causes(error: BaseException, text: str) -> list[JvmCause]:
    """Return the exceptions of the Java side behind ``error``, the outermost first.

    Parameters
    ----------
    error : BaseException
        What PySpark raised.
    text : str
        Its text, which is read where the exceptions themselves cannot be reached, as over Spark
        Connect, or when Java has ended.
    """
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes: list[JvmCause] = []
    try:
        while thrown is not None and len(causes) < _MOST:
            causes.append(JvmCause(thrown.getClass().getName(), thrown.getMessage() or ""))
            thrown = thrown.getCause()
    except (Py4JError, OSError, AttributeError, TypeError):
        causes.clear()
    return causes or [
        JvmCause(match["name"], match["message"])
        for match in map(_HEADING.match, text.splitlines())
        if match is not None
    ]


def cause_of(causes: list[JvmCause]) -> JvmCause | None:
    """Return the deepest cause, or the one above it that quotes it and says more."""
    said = [cause for cause in causes if cause.message.strip()] or causes
    if not said:
        return None
    chosen = said[-1]
    for cause in reversed(said[:-1]):
        if chosen.message not in cause.message or cause.name.startswith("org.apache.spark."):
            break
        chosen = cause
    return chosen


def unread_file(causes: list[JvmCause]) -> str | None:
    """Return the path of the file that Spark could not read, if a cause names one."""
    for cause in causes:
        match = _UNREAD.search(cause.message)
        if match is not None:
            file = match["file"]
            # Spark writes an address with three slashes and "%20", Hadoop a path with one slash.
            if file.startswith("file:///"):
                return unquote(file.removeprefix("file://"))
            return file.removeprefix("file:")
    return None
