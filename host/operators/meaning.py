# SPDX-License-Identifier: Apache-2.0
"""What a described operator computes: its functions, for the reference operator."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from host.expressions import Expression, evaluate
from host.operators.windowed import Output, WindowedOperator, state_overflow
from host.reference.operator import Arrival, GeneralOperator, OperatorInstance, WindowInstance

__all__ = ["WindowResult", "general", "reference_results"]

# The functions of the generalized operator, for all kinds of described operators.

States: TypeAlias = tuple[int, ...]
Windows: TypeAlias = tuple[WindowInstance, ...]
#: States of window instances, and payloads that are put out at once.
Updated: TypeAlias = tuple[list[Any], list[Any]]


def general(operator: WindowedOperator) -> GeneralOperator:
    """Return the generalized operator that a description means.

    The payload of an arrival maps the names of fields to integers; that of a result is a pair of a
    key and the values.
    """
    meaning = Meaning(operator)
    functions: dict[str, dict[str, Any]] = {
        "aggregate": {"output": meaning.output, "update": meaning.reduce},
        "join": {"update": meaning.join, "slide": meaning.purge},
        "join_aggregate": {"update": meaning.reduce_matches},
        "forward": {"update": meaning.forward},
    }
    chosen = functions[operator.kind]
    single = operator.instances == "single"
    if operator.slide is not None:
        chosen["slide"] = meaning.slide
    elif single and operator.kind == "aggregate":  # it holds its tuples, of which some will leave
        chosen = {"output": meaning.output_of_tuples}
    return GeneralOperator(
        size=operator.size,
        advance=operator.advance,
        inputs=operator.inputs,
        single=single,
        keys=meaning.keys,
        **chosen,
    )


class Meaning:
    """The functions f_MK, f_U, f_O and f_S of a described operator."""

    def __init__(self, operator: WindowedOperator) -> None:
        self.operator = operator

    def keys(self, arrival: Arrival) -> list[States]:
        """Return the keys of a tuple (f_MK)."""
        if not self.operator.keys:
            return [()]
        names = names_of(arrival)
        return [
            tuple(evaluate(part, names) for part in key.parts)
            for key in self.operator.keys
            if key.when is None or evaluate(key.when, names) != 0
        ]

    # An aggregate: each of several window instances holds its states.

    def reduce(self, windows: Windows, arrival: Arrival) -> Updated:
        """Combine the state of a window with what a tuple contributes (f_U)."""
        return [self._combined(windows[0].state, self._values(names_of(arrival)))], []

    def output(self, windows: Windows) -> list[Any]:
        """Return the result of a window that has ended (f_O)."""
        (window,) = windows
        return [(window.key, values) for values in self._outputs(window, window.state)]

    def output_of_tuples(self, windows: Windows) -> list[Any]:
        """Return the result of a window that holds its tuples."""
        (window,) = windows
        states = reduce(self._combined, (self._values(names_of(one)) for one in window.state))
        return self.output((replace(window, state=states),))

    def slide(self, windows: Windows) -> list[Any]:
        """Keep the state of a window that has ended, or drop it (f_S)."""
        (window,) = windows
        slide = self.operator.slide
        assert slide is not None
        return [window.state if evaluate(slide, self._names(window, window.state)) != 0 else None]

    # A join: a window instance holds how many tuples have come, and those that it stores.

    def join(self, windows: Windows, arrival: Arrival) -> Updated:
        """Match a tuple with those of the other input, and store it (f_U)."""
        count = windows[0].state[0] if windows[0].state else 0
        stored = [window.state[1] if window.state else [] for window in windows]
        pairs = [
            (windows[0].key, (*self._row(left), *self._row(right)))
            for left, right in self._matches(arrival, stored[1 - arrival.input])
        ]
        keys = list(dict.fromkeys(self.keys(arrival)))
        if not self.operator.in_turns or keys[count % len(keys)] == windows[0].key:
            stored[arrival.input] = [*stored[arrival.input], arrival]
        return [(count + 1, tuples) for tuples in stored], pairs

    def purge(self, windows: Windows) -> list[Any]:
        """Purge tuples that have left. The count stays, or keys would lose their turns (f_S)."""
        first = windows[0].left + self.operator.advance
        kept = [
            (window.state[0], [tuple_ for tuple_ in window.state[1] if tuple_.timestamp >= first])
            for window in windows
        ]
        empty = not self.operator.in_turns and not any(tuples for _, tuples in kept)
        return [None] * len(kept) if empty else list(kept)

    # A join with reductions: right tuples are stored; a left one gives what its matches add up to.

    def reduce_matches(self, windows: Windows, arrival: Arrival) -> Updated:
        """Store a right tuple; give the reductions of all that a left one matches (f_U)."""
        stored: list[Arrival] = windows[1].state or []
        if arrival.input == 1:
            return [None, [*stored, arrival]], []
        values = (self._values(pair_names(*pair)) for pair in self._matches(arrival, stored))
        adds = ("count", "sum")
        nothing = tuple(0 if one.function in adds else None for one in self.operator.reductions)
        states: States | None = None
        for one in values:
            states = self._combined(states, one)
        given = self._outputs(windows[0], states or nothing)
        row = self._row(arrival)
        return [None, stored or None], [(windows[0].key, (*row, *values)) for values in given]

    # A forward: an operator without a state.

    def forward(self, windows: Windows, arrival: Arrival) -> Updated:
        """Put a tuple out (f_U)."""
        return [None for _ in windows], [(windows[0].key, self._row(arrival), arrival.input)]

    def _row(self, arrival: Arrival) -> States:
        schema = self.operator.schemas[arrival.input]
        return tuple(arrival.payload[field.name] for field in schema)

    def _matches(
        self, arrival: Arrival, stored: list[Arrival]
    ) -> Iterator[tuple[Arrival, Arrival]]:
        """Yield (left, right) for each stored tuple of the other input that a tuple matches."""
        assert self.operator.match is not None
        for other in stored:
            left, right = (other, arrival) if arrival.input else (arrival, other)
            if evaluate(self.operator.match, pair_names(left, right)) != 0:
                yield left, right

    def _values(self, names: Mapping[str, int]) -> States:
        """Return what a tuple or a match contributes to each reduction."""
        values = (one.value for one in self.operator.reductions)
        return tuple(int(evaluate(value, names)) for value in values if value is not None)

    def _combined(self, states: States | None, values: States) -> States:
        """Return states with the values of one more tuple."""
        if states is None:
            return values
        combines = (one.combine for one in self.operator.reductions)
        return tuple(
            int(evaluate(combine, {"a": a, "b": b}))
            for combine, a, b in zip(combines, states, values, strict=True)
            if combine is not None
        )

    def _outputs(self, window: WindowInstance, states: tuple[int | None, ...]) -> list[Any]:
        """Return the outputs of a window, none if it gives no result.

        A state must fit its field when its window ends. On the way there it may leave the field:
        how far depends on the order of the tuples.
        """
        operator = self.operator
        for one, state in zip(operator.reductions, states, strict=True):
            if state is not None and not one.range.low <= state <= one.range.high:
                raise state_overflow(
                    one.name, state, one.range.low, one.range.high,
                    window=(window.left, window.left + operator.size), key=key_of(window),
                )  # fmt: skip
        names = self._names(window, states)
        if operator.having is not None and not _evaluated(operator.having, names):
            return []
        return [tuple(_output_value(output, names) for output in operator.outputs or ())]

    def _names(self, window: WindowInstance, states: tuple[int | None, ...]) -> dict[str, Any]:
        """Return what outputs, ``having`` and ``slide`` read of a window."""
        operator = self.operator
        return {
            "start": window.left,
            "end": window.left + operator.size,
            **dict(zip(operator.key_names or (), key_of(window), strict=True)),
            **{one.name: at for one, at in zip(operator.reductions, states, strict=True)},
        }


def names_of(arrival: Arrival) -> dict[str, int]:
    """Return what expressions read of a tuple."""
    return {"timestamp": arrival.timestamp, **arrival.payload}


def key_of(window: WindowInstance) -> States:
    """Return the key of a window instance."""
    assert isinstance(window.key, tuple)
    return window.key


def _evaluated(expression: Expression, names: Mapping[str, Any]) -> Any:
    """Return a value, or None if it is made of a state of nothing."""
    if any(names.get(name, 0) is None for name in expression.names):
        return None
    return evaluate(expression, names)


def _output_value(output: Output, names: Mapping[str, Any]) -> Any:
    value = _evaluated(output.value, names)
    if output.per is None or value is None:
        return value
    divisor = _evaluated(output.per, names)
    return Fraction(value, divisor) if divisor else None


def pair_names(left: Arrival, right: Arrival) -> dict[str, int]:
    """Return what expressions read of a left and a right tuple."""
    names = {f"l.{name}": value for name, value in names_of(left).items()}
    return names | {f"r.{name}": value for name, value in names_of(right).items()}


# The results of the reference operator.


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
    input : int
        Number of the input of a forwarded tuple; otherwise 0.
    """

    timestamp: int
    key: States
    values: tuple[Any, ...]
    input: int = 0


def reference_results(
    operator: WindowedOperator, arrivals: Iterable[Arrival], *, finish: bool = True
) -> list[WindowResult]:
    """Return the results of an operator on tuples, in the order of their times.

    Those of an aggregate with one time come by key, others in the order in which tuples arrive.

    Parameters
    ----------
    operator : WindowedOperator
    arrivals : iterable of Arrival
        Tuples in their order of arrival; each payload maps the names of fields to integers.
    finish : bool
        Whether the tuples are all there are, so that windows that are still open give results too.

    Raises
    ------
    UsageError
        If a state leaves its bits, or the tuples are out of order for a single window instance.
    """
    instance = OperatorInstance(general(operator))
    results = [result for arrival in arrivals for result in instance.process(arrival)]
    results += instance.finish() if finish else []
    return [WindowResult(result.timestamp, *result.payload) for result in results]
