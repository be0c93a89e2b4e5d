# SPDX-License-Identifier: Apache-2.0
"""The measured figures of the kit: one function each, in a registry; ``python -m sim figures``."""

from dataclasses import dataclass
import json
import os

__all__ = ["FIGURES", "Figure", "NotMeasured", "figure", "measure"]


class NotMeasured(Exception):
    """A figure lacks what it is computed from; the message says how to get that."""


@dataclass(frozen=True)
class Figure:
    """A figure: how to measure it, and what it should be.

    Parameters
    ----------
    function : callable
        Returns the value; gets a function that reports progress.
    unit : str
        Of the value.
    goal : str
        ``">= 1.5e7"``, ``"< 120"``.
    """

    function: object
    unit: str
    goal: str

    def met(self, value):
        """Does ``value`` reach the goal?"""
        sign, limit = self.goal.split()
        return {">=": value >= float(limit), "<": value < float(limit)}[sign]


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
        Of the figures.
    path : Path
        JSON file: a list of objects with the keys name, value, unit, goal, met. The value of a
        figure that could not be measured is null.
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
        try:
            value = round(entry.function(report), 6)
            text, met = f"{value:12.4g}", entry.met(value)
            outcome = "yes" if met else "NO"
        except NotMeasured as error:
            value, text, met, outcome = None, f"{'-':>12}", False, f"NO: {error}"
        rows.append(
            {"name": name, "value": value, "unit": entry.unit, "goal": entry.goal, "met": met}
        )
        print(f"{name:{width}} {text}  {entry.unit:16} {entry.goal:14} {outcome}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return rows
