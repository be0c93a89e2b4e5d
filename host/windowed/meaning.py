# SPDX-License-Identifier: Apache-2.0
"""What a described operator computes: its functions, for the reference operator."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from host.reference.general_operator import GeneralOperator, OperatorInstance
from host.reference.window_state import Arrival
from host.windowed.aggregate_meaning import AggregateMeaning
from host.windowed.common_meaning import Meaning, States
from host.windowed.join_meaning import ForwardMeaning, JoinAggregateMeaning, JoinMeaning
from host.windowed.operator import WindowedOperator

__all__ = ["WindowResult", "general", "reference_results"]


@dataclass(frozen=True)
class WindowResult:
    """A result of an operator.

    Parameters
    ----------
    timestamp : int
        Right boundary of the window.
    key : tuple of int
        Parts of the key.
    values : tuple
        An aggregate's outputs, of which those with a divisor are Fractions, or None where it is 0;
        the fields of a pair's left and right tuple; the fields of a left tuple and the outputs of
        its matches; or the fields of a forwarded tuple.
    """

    timestamp: int
    key: States
    values: tuple[Any, ...]


def reference_results(
    operator: WindowedOperator, arrivals: Iterable[Arrival], *, finish: bool = True
) -> list[WindowResult]:
    """Return the results of an operator on tuples, in the order of (time, key).

    Parameters
    ----------
    operator : WindowedOperator
    arrivals : iterable of Arrival
        Tuples in their order of arrival; each payload maps the names of fields to integers.
    finish : bool
        Whether the tuples are all there are, so that windows that are still open give results too.

    Raises
    ------
    AggregateOverflowError, OperatorError
        If a state leaves its bits, or the tuples are out of order for a single window instance.
    """
    instance = OperatorInstance(general(operator))
    results = [result for arrival in arrivals for result in instance.process(arrival)]
    results += instance.finish() if finish else []
    return [WindowResult(result.timestamp, *result.payload) for result in results]


def general(operator: WindowedOperator) -> GeneralOperator:
    """Return the generalized operator that a description means.

    The payload of an arrival maps the names of fields to integers; that of a result is a pair of a
    key and the values.
    """
    kinds: dict[str, type[Meaning]] = {
        "aggregate": AggregateMeaning,
        "join": JoinMeaning,
        "join_aggregate": JoinAggregateMeaning,
        "forward": ForwardMeaning,
    }
    return kinds[operator.kind](operator).general()
