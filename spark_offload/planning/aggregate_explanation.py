# SPDX-License-Identifier: Apache-2.0
"""How an aggregation is run and why: a value to inspect, and text to read."""

from dataclasses import dataclass

from spark_offload.measures.notebook import html_rows
from spark_offload.planning.explanation import Cause, text_of_rows

__all__ = ["AggregateExplanation"]


@dataclass(frozen=True, kw_only=True)
class AggregateExplanation:
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

    @property
    def offloaded(self) -> bool:
        """Whether the aggregation leaves Spark."""
        return not self.causes

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""
        causes = [("not offloaded", "\n".join(map(str, self.causes)))] if self.causes else []
        return [
            *causes,
            ("device", self.device),
            ("partitions", f"{self.partitions}: {self.partitioning}"),
            ("aggregates", "\n".join(self.aggregates)),
            ("window", self.window),
            ("results", self.ordering),
            ("columns", ", ".join(self.columns)),
            ("in Spark", self.name),
        ]

    def __str__(self) -> str:
        return text_of_rows(self.lines())

    def _repr_html_(self) -> str:
        return html_rows(self.lines())
