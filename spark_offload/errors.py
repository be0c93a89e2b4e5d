# SPDX-License-Identifier: Apache-2.0
"""Errors on their way from Java and from tasks to the user: no stack traces, the cause named.

A failure of a task arrives in the driver as a chain of causes of Java's, with the trace of a Python
worker in one of them. Here it becomes one sentence again, that of the error which began it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
import re
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from host import FailureError, JoinError

__all__ = [
    "cause_of",
    "in_partition",
    "kit_errors",
    "raised",
    "task_error",
    "task_partition",
]

# What the Java side of Spark says of a failure: the chain of causes, and the file they name.

_MOST = 20
"""Causes that are followed; a chain could be a circle."""

_UNREAD = re.compile(
    r"\[FAILED_READ_FILE[^]]*].*? reading file (?P<file>.+?)\.?"
    r"(?:\s+(?:SQLSTATE|Could not read|Data type mismatch|File does not|The file system)|\s*$)"
)
"""The file may have spaces in its name, and Spark's hint or code may stand behind it."""

_IN_DRIVER = "Py4JJavaError: "
"""An error of Java that Python had in the driver, as a function of `foreachBatch` has."""

_HEADING = re.compile(r"^(?:Caused by: |: )?(?P<name>(?:[\w$]+\.)+[\w$]+): ?(?P<message>.*)$")


@dataclass(frozen=True)
class _JvmCause:
    """One Java exception in a chain of causes.

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


def _jvm_causes(error: BaseException | None, text: str) -> list[_JvmCause]:
    """Return the exceptions of the Java side behind ``error``, the outermost first.

    Parameters
    ----------
    error : BaseException or None
        What PySpark raised.
    text : str
        Its text, which is read where the exceptions themselves cannot be reached, as over Spark
        Connect, or when Java has ended; or without an error.
    """
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes: list[_JvmCause] = []
    try:
        while thrown is not None and len(causes) < _MOST:
            message = (thrown.getMessage() or "").strip()  # some begin with an empty line
            causes.append(_JvmCause(thrown.getClass().getName(), message))
            thrown = thrown.getCause()
    except (Py4JError, OSError, AttributeError, TypeError):
        causes.clear()
    return causes or [
        _JvmCause(match["name"], match["message"])
        for match in map(_HEADING.match, text.splitlines())
        if match is not None
    ]


def cause_of(causes: list[_JvmCause]) -> _JvmCause | None:
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


def _unread_file(causes: list[_JvmCause]) -> str | None:
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


# Errors on their way from a task to the user: no stack traces, the cause and its place named.

_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?(?P<name>[A-Z]\w*): (?P<text>.+)$", re.MULTILINE)


def task_partition() -> int:
    """Return the Spark partition of the task that runs here; 0 outside of a task."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def in_partition(error: JoinError, partition: int) -> JoinError:
    """Return ``error`` with the Spark partition in its message; its type stays.

    What led to it is left out: Spark shows an exception of a task as its whole traceback, of which
    the sentence would be the last of many lines.
    """
    # Spark hands over text of which the last line is found again: so, one line.
    message = "; ".join(line.strip() for line in str(error).splitlines())
    error.args = (f"{message} (In Spark partition {partition}.)",)
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def raised(kind: type[JoinError], *said: Column | str) -> Column:
    """Return an expression without a value, which fails with an error of this kit.

    Parameters
    ----------
    kind : type of JoinError
        What :func:`task_error` makes of it.
    said : Column or str
        The sentence, in parts. A column without a value is told as null.
    """
    # task_error looks for a line that begins with the name of an error. Spark may print the plan of
    # the query beside any error, so there the name must not begin a line: it is a literal behind
    # the one that ends a line.
    parts = [
        F.lit(part) if isinstance(part, str) else F.coalesce(part.cast("string"), F.lit("null"))
        for part in said
    ]
    return F.raise_error(F.concat(F.lit("\n"), F.lit(f"{kind.__name__}: "), *parts, F.lit("\n")))


@contextmanager
def kit_errors() -> Iterator[None]:
    """Turn an error of a Spark action inside into the kit's own; see :func:`task_error`."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise task_error(error) from error


def task_error(error: BaseException) -> JoinError:
    """Return, as an error of this kit, why a Spark action failed.

    ``count()``, ``collect()`` and all other actions of a frame raise exceptions of PySpark, of
    which the first lines say little. This function finds what is worth reading in any of them: the
    sentence of this kit that a task stopped with, as the error that it was; a file that Spark could
    not read, and why; or the deepest cause that Spark tells.

    Parameters
    ----------
    error : BaseException
        What the action raised; an error of this kit is returned as it is.

    Returns
    -------
    JoinError
        The error that the task raised, or a :class:`~host.FailureError`. Its message is one
        sentence.

    Examples
    --------
    >>> try:
    ...     rows = stream_join(left, right, on="key", time="t", within="1h").collect()
    ... except Exception as error:
    ...     raise task_error(error) from error
    """
    if isinstance(error, JoinError):
        return error
    text = str(error)
    own = _own_error(text)
    if own is not None:
        return own
    if not isinstance(error, (PySparkException, Py4JError)):
        said = _sentence(text)
        return FailureError(f"{type(error).__name__}{f': {said}' if said else ''}.")
    before, _, text = text.rpartition(_IN_DRIVER)
    # The exceptions of Java that are at hand end at the Python of the driver.
    causes = _jvm_causes(None if before else error, text)
    for found in (_in_worker(text), _of_file(causes)):
        if found is not None:
            return FailureError(found)
    cause = cause_of(causes)
    said = text if cause is None else str(cause)
    return FailureError(f"Spark failed: {_sentence(said) or type(error).__name__}.")


def _own_error(text: str) -> JoinError | None:
    """Return the error of this kit whose traceback is in ``text``: its last line has all."""
    kinds = {kind.__name__: kind for kind in _family(JoinError)}
    for match in reversed(list(_LAST_LINE.finditer(text))):
        kind = kinds.get(match["name"])
        if kind is not None:
            found = kind.__new__(kind, match["text"])
            found.args = (match["text"],)
            return found
    return None


def _in_worker(text: str) -> str | None:
    """Return what an exception of a Python worker says that is none of this kit's."""
    if "Traceback (most recent call last)" not in text:
        return None
    python = text.partition("\nCaused by: ")[0].partition("\n\tat ")[0]
    lines = list(_LAST_LINE.finditer(python))
    if not lines:
        return None
    return f"A Spark task failed: {lines[-1]['name']}: {_sentence(lines[-1]['text'])}."


def _of_file(causes: list[_JvmCause]) -> str | None:
    """Return the sentence on a file that Spark could not read, if that is what happened."""
    file = _unread_file(causes)
    cause = cause_of(causes)
    if file is None or cause is None:
        return None
    if cause.name.endswith("FileNotFoundException"):
        return (
            f"Spark could not read file {file!r}: it is gone since the DataFrame was made; make "
            f"the DataFrame anew from the files that are there."
        )
    return (
        f"Spark could not read file {file!r}: {_sentence(cause.message or cause.name)}; mend the "
        f"file, or leave it out of the input."
    )


def _sentence(text: str) -> str:
    """Return the first line of ``text``, without the number of the SQL state and the full stop."""
    lines = text.strip().splitlines()
    return re.sub(r"\s*SQLSTATE: \w+;?$", "", lines[0]).strip().rstrip(".:") if lines else ""


def _family(kind: type[JoinError]) -> list[type[JoinError]]:
    """Return a class of errors and all that derive from it."""
    return [kind, *(heir for child in kind.__subclasses__() for heir in _family(child))]
