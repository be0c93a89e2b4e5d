# SPDX-License-Identifier: Apache-2.0
"""What a described operator computes: its functions, for the reference operator."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from host.errors import AggregateOverflowError
from host.expressions import Expression, evaluate
from host.operators.windowed import Output, Reduction, WindowedOperator
from host.reference.operator import Arrival, GeneralOperator, OperatorInstance, WindowInstance

__all__ = [
    "AggregateMeaning",
    "ForwardMeaning",
    "JoinAggregateMeaning",
    "JoinMeaning",
    "Meaning",
    "Reducing",
    "States",
    "WindowResult",
    "general",
    "key_of",
    "names_of",
    "reference_results",
]

# What all kinds of described operators have in common: keys, states and outputs.

States: TypeAlias = tuple[int, ...]


class Meaning(ABC):
    """The parts that all kinds of operators have."""

    def __init__(self, operator: WindowedOperator) -> None:
        self.operator = operator

    @abstractmethod
    def functions(self) -> dict[str, Any]:
        """Return the functions of the generalized operator that are not its defaults."""

    def keys(self, arrival: Arrival) -> list[States]:
        if not self.operator.keys:
            return [()]
        names = names_of(arrival)
        return [
            tuple(evaluate(part, names) for part in key.parts)
            for key in self.operator.keys
            if key.when is None or evaluate(key.when, names) != 0
        ]

    def row(self, arrival: Arrival) -> States:
        schema = self.operator.schemas[arrival.input]
        return tuple(arrival.payload[field.name] for field in schema)

    def general(self) -> GeneralOperator:
        """Return the generalized operator."""
        operator = self.operator
        return GeneralOperator(
            size=operator.size,
            advance=operator.advance,
            inputs=operator.inputs,
            single=operator.instances == "single",
            keys=self.keys,
            **self.functions(),
        )


class Reducing(Meaning):
    """An operator with reductions: how states are combined, and what a window gives for them."""

    def values(self, names: Mapping[str, int]) -> States:
        """Return what a tuple or a match contributes to each reduction."""
        return tuple(int(evaluate(_value(one), names)) for one in self.operator.reductions)

    def combined(self, states: States | None, values: States) -> States:
        """Return states with the values of one more tuple."""
        if states is None:
            return values
        return tuple(
            int(evaluate(_combine(one), {"a": a, "b": b}))
            for one, a, b in zip(self.operator.reductions, states, values, strict=True)
        )

    def outputs(self, window: WindowInstance, states: tuple[int | None, ...]) -> list[Any]:
        """Return the outputs of a window, none if it gives no result."""
        operator = self.operator
        self._require_states(window, states)
        names = self.names(window, states)
        if operator.having is not None and not _evaluated(operator.having, names):
            return []
        return [tuple(_output_value(output, names) for output in operator.outputs or ())]

    def names(self, window: WindowInstance, states: tuple[int | None, ...]) -> dict[str, Any]:
        """Return what outputs, ``having`` and ``slide`` read of a window."""
        operator = self.operator
        return {
            "start": window.left,
            "end": window.left + operator.size,
            **dict(zip(operator.key_names or (), key_of(window), strict=True)),
            **{one.name: at for one, at in zip(operator.reductions, states, strict=True)},
        }

    def _require_states(self, window: WindowInstance, states: tuple[int | None, ...]) -> None:
        """Raise for a state that does not fit its field when its window ends.

        On the way there it may leave the field: how far depends on the order of the tuples.
        """
        for one, state in zip(self.operator.reductions, states, strict=True):
            if state is not None and not one.range.low <= state <= one.range.high:
                raise AggregateOverflowError(
                    one.name, state, one.range.low, one.range.high,
                    window=(window.left, window.left + self.operator.size), key=key_of(window),
                )  # fmt: skip


def names_of(arrival: Arrival) -> dict[str, int]:
    """Return what expressions read of a tuple."""
    return {"timestamp": arrival.timestamp, **arrival.payload}


def key_of(window: WindowInstance) -> States:
    """Return the key of a window instance."""
    assert isinstance(window.key, tuple)
    return window.key


def _value(one: Reduction) -> Expression:
    assert one.value is not None
    return one.value


def _combine(one: Reduction) -> Expression:
    assert one.combine is not None
    return one.combine


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


# What an aggregate computes: reductions of the tuples of each window, when the window ends.


class AggregateMeaning(Reducing):
    """A+. Of several window instances each holds its states, a single one holds its tuples."""

    def functions(self) -> dict[str, Any]:
        functions: dict[str, Any] = {"output": self._output, "update": self._update}
        if self.operator.slide is not None:
            return {**functions, "slide": self._slide}
        if self.operator.instances == "single":
            return {"output": self._output_of_tuples}
        return functions

    def _slide(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        """Keep the state of a window that has ended, or drop it."""
        (window,) = windows
        slide = self.operator.slide
        assert slide is not None
        return [window.state if evaluate(slide, self.names(window, window.state)) != 0 else None]

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        (window,) = windows
        return [self.combined(window.state, self.values(names_of(arrival)))], []

    def _output_of_tuples(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        values = (self.values(names_of(arrival)) for arrival in window.state)
        return self._given(window, reduce(self.combined, values))

    def _output(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        return self._given(window, window.state)

    def _given(self, window: WindowInstance, states: States) -> list[Any]:
        return [(window.key, values) for values in self.outputs(window, states)]


# What joins and forwards compute: results for tuples when they arrive.


class Matching(Meaning):
    """An operator that keeps tuples, and matches arriving ones with them."""

    def matches(self, arrival: Arrival, stored: list[Arrival]) -> Iterator[tuple[Arrival, Arrival]]:
        """Yield (left, right) for each stored tuple of the other input that a tuple matches."""
        assert self.operator.match is not None
        for other in stored:
            left, right = (other, arrival) if arrival.input else (arrival, other)
            if evaluate(self.operator.match, pair_names(left, right)) != 0:
                yield left, right


class JoinMeaning(Matching):
    """J+. A window instance holds how many tuples have come, and those that it stores."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update, "slide": self._slide}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        count = windows[0].state[0] if windows[0].state else 0
        stored = [window.state[1] if window.state else [] for window in windows]
        pairs = [
            (windows[0].key, (*self.row(left), *self.row(right)))
            for left, right in self.matches(arrival, stored[1 - arrival.input])
        ]
        if not self.operator.in_turns or self._has_turn(count, windows[0], arrival):
            stored[arrival.input] = [*stored[arrival.input], arrival]
        return [(count + 1, tuples) for tuples in stored], pairs

    def _has_turn(self, count: int, window: WindowInstance, arrival: Arrival) -> bool:
        keys = list(dict.fromkeys(self.keys(arrival)))
        return keys[count % len(keys)] == window.key

    def _slide(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        """Purge tuples that have left. The count stays, or keys would lose their turns."""
        first = windows[0].left + self.operator.advance
        kept = [
            (window.state[0], [tuple_ for tuple_ in window.state[1] if tuple_.timestamp >= first])
            for window in windows
        ]
        empty = not self.operator.in_turns and not any(tuples for _, tuples in kept)
        return [None] * len(kept) if empty else list(kept)


class JoinAggregateMeaning(Matching, Reducing):
    """J+ with reductions. Right tuples are stored; a left one gives what its matches add up to."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        stored: list[Arrival] = windows[1].state or []
        if arrival.input == 1:
            return [None, [*stored, arrival]], []
        values = (self.values(pair_names(*pair)) for pair in self.matches(arrival, stored))
        states = reduce(self.combined, values, None) or self._of_nothing()
        given = self.outputs(windows[0], states)
        return [None, stored or None], [
            (windows[0].key, (*self.row(arrival), *values)) for values in given
        ]

    def _of_nothing(self) -> tuple[int | None, ...]:
        """Return the states of no match."""
        adds = {"count", "sum"}
        return tuple(0 if one.function in adds else None for one in self.operator.reductions)


class ForwardMeaning(Meaning):
    """O+ without a state: a tuple is put out for each of its keys."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        return [None for _ in windows], [(windows[0].key, self.row(arrival), arrival.input)]


def pair_names(left: Arrival, right: Arrival) -> dict[str, int]:
    """Return what expressions read of a left and a right tuple."""
    names = {f"l.{name}": value for name, value in names_of(left).items()}
    return names | {f"r.{name}": value for name, value in names_of(right).items()}


# What a described operator computes: its functions, for the reference operator.


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
