# SPDX-License-Identifier: Apache-2.0
"""Where a streaming join runs and why."""

from dataclasses import dataclass

from spark_offload.explanation import Explanation

__all__ = ["StreamExplanation"]


@dataclass(frozen=True, kw_only=True)
class StreamExplanation(Explanation):
    """Where one streaming join runs and why; ``partitions`` counts groups of rows.

    Parameters
    ----------
    state : str
        Where the rows are kept that can still be met.
    watermark : str
        Which rows are late, and when rows are forgotten.
    metrics : str
        Name under which the progress of a query has the numbers of this join.
    """

    state: str
    watermark: str
    metrics: str

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, with a heading each."""
        named = dict(super().lines())
        named["groups"] = named.pop("partitions")
        order = ("device", "accelerator", "groups", "join", "terms", "window", "arrival")
        return [
            *((name, named[name]) for name in order),
            ("watermark", self.watermark),
            ("state", self.state),
            ("results", named["results"]),
            ("columns", named["columns"]),
            ("metrics", self.metrics),
            ("in Spark", named["in Spark"]),
        ]
