# SPDX-License-Identifier: Apache-2.0
"""Where a query runs and why: values to inspect, and text to read."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from spark_offload.explanation.cost import Cost, InputSize
from spark_offload.measures import html_rows

__all__ = [
    "AggregateExplanation",
    "Cause",
    "Explained",
    "Explanation",
    "StreamAggregateExplanation",
    "TermExplanation",
]

# Where a join runs and why: a value to inspect, and text to read.


@dataclass(frozen=True)
class Cause:
    """One of the reasons for which an accelerator does not serve.

    Parameters
    ----------
    reason : str
        What it cannot do.
    columns : tuple of str
        Columns that this is about: left, then right; none if it is about all of the query.
    remedy : str
        What would help.
    """

    reason: str
    columns: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        about = f"{', '.join(self.columns)}: " if self.columns else ""
        return f"{about}{self.reason}; {self.remedy}"


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


class Explained(ABC):
    """What is said of a plan: text where it is printed, a table in a notebook."""

    causes: tuple[Cause, ...]

    @property
    def offloaded(self) -> bool:
        """Whether the work leaves Spark."""
        return not self.causes

    @abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""

    def _not_offloaded(self) -> list[tuple[str, str]]:
        """Return the line that says why the work does not leave Spark, if it does not."""
        return [("not offloaded", "\n".join(map(str, self.causes)))] if self.causes else []

    def __str__(self) -> str:
        rows = self.lines()
        width = max(len(name) for name, _ in rows) + 2
        indented = "\n" + " " * width
        return "\n".join(name.ljust(width) + text.replace("\n", indented) for name, text in rows)

    def _repr_html_(self) -> str:
        return html_rows(self.lines())


@dataclass(frozen=True, kw_only=True)
class Explanation(Explained):
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
    name : str
        What the join is called in Spark's plan and in its user interface.
    causes : tuple of Cause
        Why no accelerator is used; none if one is.
    inputs : InputSize or None
        Rows and bytes of the inputs; None for streams, which have no end.
    cost : Cost or None
        What the join costs here and in Spark alone; likewise.
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
    name: str = ""
    causes: tuple[Cause, ...] = ()
    inputs: InputSize | None = None
    cost: Cost | None = None

    def lines(self) -> list[tuple[str, str]]:
        terms = [str(term) for term in self.terms] or ["none: all pairs within the window"]
        sizes = [
            (name, str(value))
            for name, value in (("inputs", self.inputs), ("cost", self.cost))
            if value is not None
        ]
        return [
            *self._not_offloaded(),
            ("device", f"{self.device} ({self.chosen})"),
            ("accelerator", self.accelerator),
            ("partitions", f"{self.partitions}: {self.partitioning}"),
            ("join", self.join),
            ("terms", "\n".join(terms)),
            ("window", self.window),
            ("arrival", self.arrival),
            ("results", self.ordering),
            ("columns", ", ".join(self.columns)),
            *sizes,
            ("in Spark", self.name),
        ]


# How an aggregation is run and why: a value to inspect, and text to read.


@dataclass(frozen=True, kw_only=True)
class AggregateExplanation(Explained):
    """How one aggregation is run and why.

    Parameters
    ----------
    device : str
        What computes it.
    partitions : int
        Partitions of the answer.
    partitioning : str
        What the rows are partitioned by, and why.
    aggregates : tuple of str
        What is computed.
    window : str
        The windows.
    ordering : str
        Order in which results leave.
    columns : tuple of str
        Columns of the answer.
    name : str
        What it is called in Spark's plan and in its user interface.
    causes : tuple of Cause
        Why Spark itself computes it; none if the host does.
    """

    device: str
    partitions: int
    partitioning: str
    aggregates: tuple[str, ...]
    window: str
    ordering: str
    columns: tuple[str, ...]
    name: str
    causes: tuple[Cause, ...] = ()

    def lines(self) -> list[tuple[str, str]]:
        return [
            *self._not_offloaded(),
            ("device", self.device),
            ("partitions", f"{self.partitions}: {self.partitioning}"),
            ("aggregates", "\n".join(self.aggregates)),
            ("window", self.window),
            ("results", self.ordering),
            ("columns", ", ".join(self.columns)),
            ("in Spark", self.name),
        ]


# How an aggregation of a stream is run and why.


@dataclass(frozen=True, kw_only=True)
class StreamAggregateExplanation(AggregateExplanation):
    """How one aggregation of a stream is run and why; ``partitions`` counts those of the state.

    Parameters
    ----------
    watermark : str
        Which rows are late, and when results come.
    metrics : str
        Name under which the progress of a query has the numbers of this aggregation.
    """

    watermark: str
    metrics: str

    def lines(self) -> list[tuple[str, str]]:
        named = super().lines()
        *first, last = named
        return [*first, ("watermark", self.watermark), ("metrics", self.metrics), last]
