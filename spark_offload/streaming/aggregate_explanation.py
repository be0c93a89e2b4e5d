# SPDX-License-Identifier: Apache-2.0
"""How an aggregation of a stream is run and why."""

from dataclasses import dataclass

from spark_offload.planning.aggregate_explanation import AggregateExplanation

__all__ = ["StreamAggregateExplanation"]


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
