# SPDX-License-Identifier: Apache-2.0
"""A log of what was decided of the devices of elastic pools, and the same decisions once more."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from host.errors import UsageError
from host.files.writing import atomic_output
from host.query.cores import Controller, CoreControl
from spark_offload.devices.pool_decision import PoolDecision

__all__ = ["read_decisions", "repeat_decisions", "write_decisions"]


def write_decisions(decisions: Iterable[PoolDecision], path: str | Path) -> None:
    """Write decisions to a file, a JSON document a line, whole or not at all."""
    with atomic_output(Path(path)) as place:
        place.write_text("".join(f"{decision.text}\n" for decision in decisions), "utf-8")


def read_decisions(path: str | Path) -> list[PoolDecision]:
    """Return the decisions of a file.

    Raises
    ------
    UsageError
        If the file cannot be read, or a line is no decision.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The decisions in {str(path)!r} cannot be read: {error}.") from error
    decisions = []
    for number, line in enumerate(lines, 1):
        try:
            decisions.append(PoolDecision.parse(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise UsageError(
                f"Line {number} of {str(path)!r} is no decision on the devices of a pool; give a "
                f"file that write_decisions has written."
            ) from None
    return decisions


def repeat_decisions(
    decisions: Iterable[PoolDecision], controller: Controller
) -> list[PoolDecision]:
    """Return what a controller decides on the observations of a log.

    With the controller that wrote the log, these are the same decisions. With another one, they are
    those that it would have made on what was observed, whose load is that of the devices which were
    in use at the time.

    Parameters
    ----------
    decisions : iterable of PoolDecision
        Decisions of one join, in the order of its micro-batches. The first one of each machine is
        where the control of that machine starts.
    controller : Controller
        What decides.
    """
    controls: dict[str, CoreControl] = {}
    repeated = []
    for decision in decisions:
        control = controls.get(decision.machine)
        if control is None:
            control = CoreControl(controller, decision.devices, active=decision.active)
            controls[decision.machine] = control
        elif decision.seen is not None:
            control.see(decision.seen)
        repeated.append(replace(decision, active=control.active))
    return repeated
