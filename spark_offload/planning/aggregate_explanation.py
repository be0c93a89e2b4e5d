# SPDX-License-Identifier: Apache-2.0
"""How an aggregation is run and why: a value to inspect, and text to read."""

from dataclasses import dataclass

from spark_offload.planning.explanation import Cause, Explained

__all__ = ["AggregateExplanation"]


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
