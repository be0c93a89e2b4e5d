# SPDX-License-Identifier: Apache-2.0
"""The questions as commands of the host, which run in this process on a simulated device."""

from contextlib import redirect_stderr
import io
from pathlib import Path

from host.__main__ import main
from host.query.queries import Query

from .workload import Workload

__all__ = ["ALIKE", "aggregate", "asof", "band", "equality"]

#: The question whose default device answers all three.
ALIKE = Query(band=[("x", "rx", -1, 1), ("y", "ry", -1, 1)], time=("t", "rt"), rows=1)


def band(workload: Workload, device: str | None, output: Path) -> None:
    """Join by a band of two fields."""
    bounds = f"{-workload.reach}:{workload.reach}"
    bands = ["--band", f"x:rx:{bounds}", "--band", f"y:ry:{bounds}"]
    _run("join", device, output, *_sides(workload), *bands, *_window(workload))


def equality(workload: Workload, device: str | None, output: Path) -> None:
    """Join by equal keys."""
    _run("join", device, output, *_sides(workload), "--on", "k:rk", *_window(workload))


def aggregate(workload: Workload, device: str | None, output: Path) -> None:
    """Count the rows, and add up a field, of each key in each window of time."""
    words = ["--input", workload.left, "--time", "t", "--window", workload.within, "--on", "k"]
    values = ["--aggregate", "n=count", "--aggregate", "total=sum:x"]
    _run("aggregate", device, output, *words, *values, "--sorted")


def asof(workload: Workload, device: str | None, output: Path) -> None:
    """Join each left row with the last right row of its key, if there is one near enough."""
    words = ["--time", "t:rt", "--on", "k:rk", "--within", str(workload.within), "--how", "inner"]
    _run("asof", device, output, *_sides(workload), *words, "--sorted")


def _window(workload):
    return ["--time", "t:rt", "--within", str(workload.within), "--sorted"]


def _sides(workload):
    return ["--left", workload.left, "--right", workload.right]


def _run(command, device, output, *words):
    """Run a command that must succeed; what it says is left out. The host works if no device is."""
    said = io.StringIO()
    given = [*words, *([] if device is None else ["--device", device]), "--output", output]
    with redirect_stderr(said):
        code = main([command, *map(str, given)])
    if code:
        raise RuntimeError(f"host {command} ended with code {code}: {said.getvalue()}")
