# SPDX-License-Identifier: Apache-2.0
"""Choose the engine for a query that names no device."""

from dataclasses import dataclass

from host.query.join_query import JoinQuery

__all__ = ["EngineChoice", "suitable_engine"]


@dataclass(frozen=True)
class EngineChoice:
    """An engine, and the reason for its choice.

    Parameters
    ----------
    engine : str
        ``"index"`` or ``"scan"``.
    reason : str
        Reason for the choice, for an explanation.
    """

    engine: str
    reason: str


def suitable_engine(query: JoinQuery) -> EngineChoice:
    """Choose the index if a term bounds the difference on both sides, otherwise the scan.

    Without such a term, all tuples of the window are in one bucket. An index reads them one by one;
    a scan reads many at a time.
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
