# SPDX-License-Identifier: Apache-2.0
"""Orderings as text, for command lines."""

import re

from host.errors import UsageError
from host.query.goals import Goal, InputRate, Latency, Queue
from host.query.ordering import Ordering
from host.reference.quantity import positive

__all__ = ["FORMS", "parse_ordering"]

#: The forms that :func:`parse_ordering` reads.
FORMS = (
    "none, outer, inner, inner:Q, inner:Q:hardware, relaxed:P, adaptive:P:rate=RATE, "
    "adaptive:P:latency=CYCLES or adaptive:P:queue=TUPLES@RATE, where P is the longest period in "
    "probes and RATE is in tuples "
    "per cycle, or per second at a clock as in 2000000/s@142MHz"
)

_PER_SECOND = re.compile(r"(?P<tuples>[^/@]+)/s@(?P<mhz>.+)MHz", re.IGNORECASE)


def parse_ordering(text: str, option: str = "--ordering") -> Ordering:
    """Read an ordering in one of the :data:`FORMS`.

    Raises
    ------
    UsageError
        If the text is none, with the option and what it takes.
    """
    kind, *parts = text.strip().split(":")
    try:
        match kind, parts:
            case "none", []:
                return Ordering.none()
            case "outer", []:
                return Ordering.outer()
            case "inner", []:
                return Ordering.inner()
            case "inner", [rounds]:
                return Ordering.inner(_whole(rounds))
            case "inner", [rounds, "hardware"]:
                return Ordering.inner(_whole(rounds), in_hardware=True)
            case "relaxed", [period]:
                return Ordering.relaxed(_whole(period))
            case "adaptive", [most, goal]:
                return Ordering.adaptive(_whole(most), _goal(goal))
            case _:
                raise UsageError("That is none of them")
    except (UsageError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise UsageError(f"{option} takes {FORMS}, not {text!r}. {reason}.") from None


def _goal(text: str) -> Goal:
    name, _, value = text.partition("=")
    if name == "rate":
        return _rate(value)
    if name == "latency":
        return Latency(_whole(value))
    if name == "queue":
        tuples, _, rate = value.partition("@")
        return Queue(_whole(tuples), _rate(rate).tuples_per_cycle)
    raise UsageError(f"Nothing called {name!r} can be held")


def _rate(text: str) -> InputRate:
    found = _PER_SECOND.fullmatch(text)
    if found is None:
        return InputRate(positive(text, "tuples per cycle"))
    tuples = positive(found["tuples"], "tuples per second")
    return InputRate.per_second(tuples, mhz=positive(found["mhz"], "megahertz"))


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise UsageError(f"{text!r} is no whole number")
    return int(text)
