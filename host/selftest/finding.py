# SPDX-License-Identifier: Apache-2.0
"""What a step of a self test has found."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Outcome", "StepFailedError"]


class Outcome(Enum):
    """How a step has ended."""

    #: It found what it should find.
    PASSED = "ok"
    #: It did not.
    FAILED = "FAILED"
    #: The device has nothing of that kind.
    ABSENT = "-"
    #: A step before it has failed.
    UNTRIED = "untried"


@dataclass(frozen=True)
class Finding:
    """One step of a self test, after it was tried.

    Attributes
    ----------
    step : str
        Name of the step.
    outcome : Outcome
        How it has ended.
    text : str
        What it has found.
    hint : str
        Where to look for the fault; empty unless the step has failed.
    """

    step: str
    outcome: Outcome
    text: str
    hint: str = ""


class StepFailedError(Exception):
    """A step has found something else than it should; the message says what."""
