# SPDX-License-Identifier: Apache-2.0
"""Processor time of a program and of all processes that it has started, Spark's among them."""

import os
from pathlib import Path

__all__ = ["processor_seconds"]

PROCESSES = Path("/proc")
"""Where Linux tells of all processes."""


def processor_seconds(process: int | None = None) -> float | None:
    """Return the processor time of a process and its descendants up to now, in seconds.

    Descendants that have ended count if they were waited for. On a machine whose processors are
    busy otherwise, this says more than the clock does.

    Parameters
    ----------
    process : int, optional
        By default this one.

    Returns
    -------
    float or None
        None where there is no such folder as Linux has.
    """
    if not PROCESSES.is_dir():
        return None
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has just ended
        fields = text.rpartition(")")[2].split()  # from the state on; a name may hold anything
        number = int(folder.name)
        spent[number] = sum(map(int, fields[11:15]))  # its own, and those of children that ended
        children.setdefault(int(fields[1]), []).append(number)
    waiting, total = [os.getpid() if process is None else process], 0
    while waiting:
        number = waiting.pop()
        total += spent.get(number, 0)
        waiting += children.get(number, [])
    return total / os.sysconf("SC_CLK_TCK")
