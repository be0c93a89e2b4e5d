# SPDX-License-Identifier: Apache-2.0
"""Registry of the figures, one function each; ``python -m bench figures`` measures them."""

from dataclasses import dataclass, field
import json
import operator
import os

__all__ = ["FIGURES", "Figure", "NotMeasured", "Result", "figure", "measure", "reaches"]


class NotMeasured(Exception):
    """A figure lacks the data it is computed from; the message says how to produce the data."""


@dataclass(frozen=True)
class Result:
    """The result of a figure's function that returns more than a value.

    Parameters
    ----------
    value : float
        The measured value.
    judged : float or None
        Value that is compared with the goal; ``value`` if None.
    decided : bool
        Whether the result can be compared with the goal at all.
    notes : tuple of str
        Lines printed below the row: the conditions under which the value holds.
    details : dict
        Entries added to the row of the JSON file.
    """

    value: float
    judged: float | None = None
    decided: bool = True
    notes: tuple[str, ...] = ()
    details: dict = field(default_factory=dict)


def reaches(goal: str | None, value: float) -> bool | None:
    """Return whether a value reaches a goal such as ``">= 1.5e7"``; None without a goal."""
    if not goal:
        return None
    sign, limit = goal.split()
    return {">=": operator.ge, "<=": operator.le, "<": operator.lt}[sign](value, float(limit))


@dataclass(frozen=True)
class Figure:
    """A figure: how to measure it, and its goal.

    Parameters
    ----------
    function : callable
        Called with a function that reports progress; returns the value or a :class:`Result`.
    unit : str
        Unit of the value.
    goal : str or None
        Such as ``">= 1.5e7"`` or ``"< 120"``; None if the figure only serves for comparison.
    """

    function: object
    unit: str
    goal: str | None

    def met(self, value):
        """Return whether ``value`` reaches the goal; None without a goal."""
        return reaches(self.goal, value)

    def measured(self, report):
        """Return the :class:`Result` of the function, and whether it reaches the goal."""
        result = self.function(report)
        if not isinstance(result, Result):
            result = Result(result)
        judged = result.value if result.judged is None else result.judged
        return result, self.met(judged) if result.decided else None


#: What a row says about its goal; "?" if the machine was too unsteady to decide.
OUTCOMES = {True: "yes", False: "NO", None: "?"}
#: All figures, by name.
FIGURES = {}


def figure(name, *, unit, goal):
    """Register the decorated function as the figure ``name``."""

    def register(function):
        FIGURES[name] = Figure(function, unit, goal)
        return function

    return register


def measure(names, path, *, report):
    """Measure figures, print a row for each, and write all rows to ``path``.

    Parameters
    ----------
    names : list of str
        Names of the figures.
    path : Path
        JSON file: a list of objects with the keys name, value, unit, goal and met, and with the
        figure's details. ``value`` is null if the figure could not be measured. ``met`` is null
        without a goal, and if the machine was too unsteady to decide.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    list of dict
        The rows.
    """
    rows = []
    width = max(map(len, ["name", *names]))
    print(f"{'name':{width}} {'value':>12}  {'unit':16} {'goal':14} met")
    for name in names:
        entry = FIGURES[name]
        goal = entry.goal or "-"
        row = {"name": name, "value": None, "unit": entry.unit, "goal": entry.goal, "met": False}
        try:
            result, met = entry.measured(report)
            row |= {"value": round(result.value, 6), "met": met, **result.details}
            text, outcome = f"{result.value:12.4g}", OUTCOMES[met]
            outcome = outcome if entry.goal else "-"
            notes = result.notes
        except NotMeasured as error:
            text, outcome, notes = f"{'-':>12}", f"NO: {error}", ()
        rows.append(row)
        print(f"{name:{width}} {text}  {entry.unit:16} {goal:14} {outcome}", flush=True)
        for note in notes:
            print(f"    {note}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return rows
