# SPDX-License-Identifier: Apache-2.0
"""Where a query runs and why: a value to inspect, and text to read."""

from dataclasses import dataclass, replace

from host import JoinError
from host.errors import AcceleratorLimitError, MissingToolError, UnsupportedTypeError
from host.installation import command
from spark_offload.explanation.cost import Cost, InputSize
from spark_offload.measures import html_rows

__all__ = [
    "Cause",
    "Explanation",
    "TermExplanation",
]


@dataclass(frozen=True)
class Cause:
    """Why what was asked for does not serve: an accelerator, or this kit.

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

    @classmethod
    def of(cls, error: JoinError) -> "Cause":
        """Return the cause that an error tells."""
        if isinstance(error, AcceleratorLimitError):
            return cls(error.reason, (), error.remedy)
        if isinstance(error, UnsupportedTypeError):
            reason = f"values of type {error.type_name} are not computed with on the host"
            return cls(reason, (error.column,), f"cast it to one of: {error.supported}")
        remedy = (
            error.remedy
            if isinstance(error, MissingToolError)
            else f"`{command('host doctor')}` says which tools are missing"
        )
        return cls(str(error).rstrip("."), (), remedy)

    def __str__(self) -> str:
        about = f"{', '.join(self.columns)}: " if self.columns else ""
        return f"{about}{self.reason}; {self.remedy}"


@dataclass(frozen=True)
class TermExplanation:
    """Explanation of how one term of the query is evaluated.

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


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where one query runs and why: a value to inspect, text to read, a table in a notebook.

    What has no meaning for a query is left empty, and not said.

    Parameters
    ----------
    device : str
        Address of the device, as given, or what else computes the answer.
    chosen : str
        Why this device.
    accelerator : str
        What the device's manifest says of it.
    partitions : int
        Partitions of the answer, each computed by a task with a device of its own; in a streaming
        join, groups of rows.
    partitioning : str
        What the rows are partitioned by, and why.
    join : str
        Type of the join, and what its answer is made of.
    terms : tuple of TermExplanation
        All comparisons of a join.
    aggregates : tuple of str
        What an aggregation computes.
    window : str
        Which rows of the other side a row meets; the windows of an aggregation.
    arrival : str
        Order in which rows arrive.
    watermark : str
        Which rows of a stream are late, and when rows are forgotten or results come.
    state : str
        Where the rows of streams are kept that can still be met.
    ordering : str
        Order in which results leave.
    columns : tuple of str
        Columns of the answer.
    inputs : InputSize or None
        Rows and bytes of the inputs of a join; None for streams, which have no end.
    cost : Cost or None
        What the join costs here and in Spark alone; likewise.
    metrics : str
        Name under which the progress of a streaming query has the numbers.
    name : str
        What the query is called in Spark's plan and in its user interface.
    causes : tuple of Cause
        Why what was asked for does not compute the answer; none if it does.
    """

    device: str
    partitions: int
    partitioning: str
    window: str
    ordering: str
    columns: tuple[str, ...]
    name: str = ""
    chosen: str = ""
    accelerator: str = ""
    join: str = ""
    terms: tuple[TermExplanation, ...] = ()
    aggregates: tuple[str, ...] = ()
    arrival: str = ""
    watermark: str = ""
    state: str = ""
    metrics: str = ""
    causes: tuple[Cause, ...] = ()
    inputs: InputSize | None = None
    cost: Cost | None = None

    @property
    def offloaded(self) -> bool:
        """Whether what was asked for computes the answer."""
        return not self.causes

    def by_spark(self, device: str, name: str, error: JoinError) -> "Explanation":
        """Return the explanation of the same answer by Spark itself.

        Parameters
        ----------
        device : str
            What of Spark computes it.
        name : str
            What that is called.
        error : JoinError
            Why the host cannot.
        """
        return replace(
            self,
            device=device,
            chosen="the host cannot serve; strict=True raises this",
            partitioning="as Spark decides",
            ordering="in no order",
            metrics="none: Spark's own progress" if self.metrics else "",
            name=f"{name}: {self.name.partition(': ')[2]}",
            causes=(Cause.of(error),),
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""
        terms = "\n".join(map(str, self.terms)) or "none: all pairs within the window"
        said = (
            ("not offloaded", "\n".join(map(str, self.causes))),
            ("device", f"{self.device} ({self.chosen})" if self.chosen else self.device),
            ("accelerator", self.accelerator),
            (
                "groups" if self.state else "partitions",
                f"{self.partitions}: {self.partitioning}",
            ),
            ("join", self.join),
            ("terms", terms if self.join else ""),
            ("aggregates", "\n".join(self.aggregates)),
            ("window", self.window),
            ("arrival", self.arrival),
            ("watermark", self.watermark),
            ("state", self.state),
            ("results", self.ordering),
            ("columns", ", ".join(self.columns)),
            ("inputs", str(self.inputs or "")),
            ("cost", str(self.cost or "")),
            ("metrics", self.metrics),
            ("in Spark", self.name),
        )
        return [(heading, text) for heading, text in said if text]

    def __str__(self) -> str:
        rows = self.lines()
        width = max(len(name) for name, _ in rows) + 2
        indented = "\n" + " " * width
        return "\n".join(name.ljust(width) + text.replace("\n", indented) for name, text in rows)

    def _repr_html_(self) -> str:
        return html_rows(self.lines())
