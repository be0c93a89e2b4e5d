# SPDX-License-Identifier: Apache-2.0
"""Which engine suits a query, when no device is named."""

from dataclasses import dataclass

from host.query import JoinQuery

__all__ = ["EngineChoice", "suitable_engine"]


@dataclass(frozen=True)
class EngineChoice:
    """An engine, and why it.

    Parameters
    ----------
    engine : str
        ``"index"`` or ``"scan"``.
    reason : str
        For an explanation.
    """

    engine: str
    reason: str


def suitable_engine(query: JoinQuery) -> EngineChoice:
    """Choose the index where a term bounds what can match from both sides, else the scan.

    Without such a term all tuples of the window are in one bucket, which an index reads one by one
    and a scan many at a time.
    """
    for term in sorted(query.terms, key=lambda term: not term.is_equality):
        if term.low is not None and term.high is not None:
            return EngineChoice(
                "index", f"the default for a bounded term, {term}: an index reads only its buckets"
            )
    return EngineChoice(
        "scan",
        "the default where no term is bounded on both sides: every tuple of the window is compared",
    )
