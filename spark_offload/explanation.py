# SPDX-License-Identifier: Apache-2.0
"""Where a query runs and why, and what it costs: values to inspect, and text to read."""

from dataclasses import dataclass, replace
import re
from typing import Any, cast

from pyspark.sql import DataFrame

from host import JoinError, Manifest, Ordering
from host.errors import AcceleratorLimitError, MissingToolError, UnsupportedTypeError
from host.installation import command
from host.protocol.cost_model import (
    JoinSize,
    describe_latency,
    estimated_cycles,
    match_passes,
    mean_of_last,
)
from host.protocol.manifest import JoinAggregateManifest
from host.protocol.segments import hardware_time
from host.query.queries import Query
from spark_offload.cluster.machines import is_connect
from spark_offload.measures import html_rows
from spark_offload.partitioning.ranges import OrderProfile
from spark_offload.verification.own_queries import own_join

__all__ = [
    "Cause",
    "Explanation",
    "InputSize",
    "TermExplanation",
    "estimate_cost",
    "join_operator",
    "join_size",
]

# What a join costs: on the accelerator in cycles, in Spark alone in pairs of rows compared.

NESTED_LOOPS = ("BroadcastNestedLoopJoin", "CartesianProduct")
"""Operators of Spark that compare every row with every row."""

_OPERATOR = re.compile(r"\b(\w+Join|CartesianProduct)\b")


@dataclass(frozen=True)
class InputSize:
    """Size of the inputs.

    Parameters
    ----------
    rows : (int, int) or None
        Of the left and of the right input; None before they have been read.
    bytes : (int or None, int or None)
        Spark's estimates; None where it has none.
    """

    rows: tuple[int, int] | None
    bytes: tuple[int | None, int | None] = (None, None)

    def __str__(self) -> str:
        sides = []
        for side, name in enumerate(("left", "right")):
            count = None if self.rows is None else f"{self.rows[side]:,} rows"
            size = self.bytes[side]
            parts = [count, None if size is None else f"{_short(size)} by Spark's estimate"]
            known = [part for part in parts if part is not None] or ["of unknown size"]
            sides.append(f"{name} {', '.join(known)}")
        text = "; ".join(sides)
        if self.rows is None:
            text += "; rows are not known before they are read: explain(frame, count=True)"
        return text


@dataclass(frozen=True)
class Cost:
    """Cost of a join on the accelerator, and in Spark alone.

    Parameters
    ----------
    cycles : int or None
        Clock cycles of all devices together at the least, which is about what it takes if few rows
        match; None if the rows are not known, or no device with a clock is used.
    hardware : str or None
        How long so many take on one device (:func:`host.protocol.segments.hardware_time`).
    latency : str or None
        How long the results of one tuple take (:func:`host.protocol.cost_model.describe_latency`).
    operator : str or None
        Join operator of Spark's own plan; None if Spark alone has no such join.
    pairs : int or None
        Pairs of rows that it compares; None where that depends on the values.
    is_elsewhere : bool
        Whether the cycles are those of an accelerator that could join in place of software.
    """

    cycles: int | None
    operator: str | None
    pairs: int | None
    hardware: str | None = None
    latency: str | None = None
    is_elsewhere: bool = False

    def of_columns(self, count: int, manifest: Manifest) -> "Cost":
        """Return the cost of matches of which ``count`` columns are aggregated, from that of one.

        Each column takes passes of its own; rows are counted in any of them.
        """
        if self.cycles is None or count < 2:
            return self
        cycles = count * self.cycles
        return replace(self, cycles=cycles, hardware=hardware_time(cycles, manifest))

    def __str__(self) -> str:
        ours = "cycles: not known"
        if self.cycles is not None:
            least = self.hardware or f"{self.cycles:,} cycles"
            ours = f"at least {least}, more where many rows match"
        if self.is_elsewhere and self.cycles is not None:
            ours = f"on the accelerator (device='sim:') {ours}"
        elif self.latency is not None:
            ours += f"; {self.latency}"
        if self.operator is None:
            return f"{ours}; Spark alone has no join over the last rows"
        own = self.operator
        if self.pairs is not None:
            own += f", which compares {self.pairs:,} pairs of rows"
        elif self.operator in NESTED_LOOPS:
            own += ", which compares every row with every row"
        return f"{ours}; Spark's own plan: {own}"


def estimate_cost(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    manifest: Manifest | None,
    size: JoinSize | None,
    devices: int = 1,
) -> Cost:
    """Estimate a join from its size; Spark makes its own plan of it, and runs nothing.

    Parameters
    ----------
    manifest : Manifest or None
        Of the accelerator; None if there is none. For a join aggregate, the cost is that of one
        column that is aggregated.
    size : JoinSize or None
        Of the whole join, if it is known.
    devices : int
        Among which keys are divided.
    """
    cycles = hardware = latency = None
    if manifest is not None and size is not None:
        passes, each, ordering = 1, size.shared(devices), query.ordering
        if isinstance(manifest, JoinAggregateManifest):
            passes, each = match_passes(query, each)
            ordering = Ordering.none()
        cycles = devices * passes * estimated_cycles(manifest, each, ordering)
        hardware = hardware_time(cycles, manifest)
        latency = describe_latency(manifest, each.windows)
    operator = pairs = None
    if query.is_timed:
        operator = join_operator(own_join(left, right, query))
        if size is not None and operator in NESTED_LOOPS:
            pairs = round(size.rows[0] * size.rows[1])
    return Cost(cycles, operator, pairs, hardware, latency)


def join_size(query: Query, profile: OrderProfile, width: int | None) -> JoinSize | None:
    """Return the size of a join from how its rows lie in time.

    Parameters
    ----------
    width : int or None
        Of a time-based window in order numbers; None if it is count-based or not a number.
    """
    if not profile.total:
        return JoinSize((0, 0), (0, 0))
    rows = (float(profile.rows[0]), float(profile.rows[1]))
    if query.rows is not None:
        windows = [mean_of_last(query.rows, count) for count in rows]
    elif width is not None:
        share = profile.mean_window(width)
        windows = [share * count for count in rows]
    else:
        return None
    return JoinSize(rows, (windows[0], windows[1]))


def join_operator(frame: DataFrame) -> str | None:
    """Return the join operator of Spark's plan for a frame, the uppermost if it has several."""
    found = _OPERATOR.search(_physical_plan(frame))
    return None if found is None else found[1]


def _physical_plan(frame: DataFrame) -> str:
    """Return the text that ``frame.explain()`` prints; to print it is no way to get it.

    The standard output belongs to the program, all of whose threads share it.
    """
    if is_connect(frame):
        return str(cast(Any, frame)._explain_string())
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _short(count: int) -> str:
    """Return a number of bytes with three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:,.4g} TB"


# Where a query runs and why: a value to inspect, and text to read.


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
