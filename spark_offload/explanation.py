# SPDX-License-Identifier: Apache-2.0
"""Where a join runs and why: a value to inspect, and text to read."""

from dataclasses import dataclass

__all__ = ["Explanation", "TermExplanation"]


@dataclass(frozen=True)
class TermExplanation:
    """How one term of the query is evaluated.

    Parameters
    ----------
    term : str
        The comparison, with the names of the columns.
    field : str
        Key field of the accelerator that carries it.
    note : str
        How the columns become that field.
    """

    term: str
    field: str
    note: str

    def __str__(self) -> str:
        return f"{self.term}  ->  {self.field} ({self.note})"


@dataclass(frozen=True)
class Explanation:
    """Where one join runs and why.

    Parameters
    ----------
    device : str
        Address of the device, as given.
    chosen : str
        Why this device.
    accelerator : str
        What the device's manifest says of it.
    partitions : int
        Partitions of the answer, each joined by a task with a device of its own.
    partitioning : str
        What the rows are partitioned by, and why.
    join : str
        Type of the join, and what its answer is made of.
    terms : tuple of TermExplanation
        All comparisons.
    window : str
        Which rows of the other side a row meets.
    arrival : str
        Order in which rows arrive.
    ordering : str
        Order in which results leave.
    columns : tuple of str
        Columns of the answer.
    """

    device: str
    chosen: str
    accelerator: str
    partitions: int
    partitioning: str
    join: str
    terms: tuple[TermExplanation, ...]
    window: str
    arrival: str
    ordering: str
    columns: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""
        terms = [str(term) for term in self.terms] or ["none: all pairs within the window"]
        return [
            ("device", f"{self.device} ({self.chosen})"),
            ("accelerator", self.accelerator),
            ("partitions", f"{self.partitions}: {self.partitioning}"),
            ("join", self.join),
            ("terms", "\n".join(terms)),
            ("window", self.window),
            ("arrival", self.arrival),
            ("results", self.ordering),
            ("columns", ", ".join(self.columns)),
        ]

    def __str__(self) -> str:
        rows = self.lines()
        width = max(len(name) for name, _ in rows) + 2
        indented = "\n" + " " * width
        return "\n".join(name.ljust(width) + text.replace("\n", indented) for name, text in rows)
