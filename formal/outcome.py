# SPDX-License-Identifier: Apache-2.0
"""Outcome of a proof."""

from dataclasses import dataclass

__all__ = ["Outcome"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one proof.

    Attributes
    ----------
    name : str
    claims, covers : int
        Number of claims and covers.
    failures : list of str
        Reasons why the proof fails: claims that do not hold, covers that are not reached.
    killed : list of str
        Mutants that break the proof.
    survivors : list of str
        Mutants that do not break the proof.
    spared : int
        Number of mutants that the proof need not detect.
    seconds : float
        Processor time, with that of Yosys.
    """

    name: str
    claims: int
    covers: int
    failures: list
    killed: list
    survivors: list
    spared: int
    seconds: float

    @property
    def good(self):
        """Return whether everything holds and no mutant survives."""
        return not self.failures and not self.survivors
