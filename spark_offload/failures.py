# SPDX-License-Identifier: Apache-2.0
"""Errors on their way from a task to the user: no stack traces, and the partition named."""

import re

from pyspark.errors import PySparkException

from host import FailureError, JoinError

__all__ = ["in_partition", "task_error"]

_LAST_LINE = re.compile(r"^(?:[\w.]+\.)?(?P<name>[A-Z]\w*): (?P<text>.+)$", re.MULTILINE)


def in_partition(error: JoinError, partition: int) -> JoinError:
    """Return ``error`` with the Spark partition in its message; its type stays."""
    # Spark hands over text of which the last line is found again: so, one line.
    message = "; ".join(line.strip() for line in str(error).splitlines())
    error.args = (f"{message} (In Spark partition {partition}.)",)
    return error


def task_error(error: PySparkException) -> JoinError:
    """Return the error of this kit that made a Spark action fail.

    Spark hands an exception of a Python worker over as the text of its traceback; the last line of
    that names the type and the message. An error that is none of this kit's becomes a
    :class:`~host.FailureError` with what Spark says.
    """
    text = str(error)
    kinds = {kind.__name__: kind for kind in _family(JoinError)}
    for match in reversed(list(_LAST_LINE.finditer(text))):
        kind = kinds.get(match["name"])
        if kind is not None:
            found = kind.__new__(kind, match["text"])
            found.args = (match["text"],)
            return found
    worker = [match for match in _LAST_LINE.finditer(text) if "Traceback" in text]
    reason = f"{worker[-1]['name']}: {worker[-1]['text']}" if worker else text.splitlines()[0]
    return FailureError(f"A Spark task failed: {reason}")


def _family(kind: type[JoinError]) -> list[type[JoinError]]:
    """Return a class of errors and all that derive from it."""
    return [kind, *(heir for child in kind.__subclasses__() for heir in _family(child))]
