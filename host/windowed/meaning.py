# SPDX-License-Identifier: Apache-2.0
"""What a described operator computes: its functions, for the reference operator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from host.errors import AggregateOverflowError
from host.expressions import evaluate
from host.reference.general_operator import GeneralOperator, OperatorInstance
from host.reference.window_state import Arrival, WindowInstance
from host.windowed.operator import WindowedOperator
from host.windowed.parts import Output

__all__ = ["WindowResult", "general", "reference_results"]

States = tuple[int, ...]


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
        the fields of a pair's left and right tuple; or the fields of a forwarded tuple.
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
    kinds = {"aggregate": _Aggregate, "join": _Join, "forward": _Forward}
    return kinds[operator.kind](operator).general()


class _Meaning:
    """The parts that all kinds of operators have."""

    def __init__(self, operator: WindowedOperator) -> None:
        self.operator = operator

    def keys(self, arrival: Arrival) -> list[States]:
        if not self.operator.keys:
            return [()]
        names = _names(arrival)
        return [
            tuple(evaluate(part, names) for part in key.parts)
            for key in self.operator.keys
            if key.when is None or evaluate(key.when, names) != 0
        ]

    def _row(self, arrival: Arrival) -> States:
        schema = self.operator.schemas[arrival.input]
        return tuple(arrival.payload[field.name] for field in schema)

    def general(self, **functions: Any) -> GeneralOperator:
        operator = self.operator
        return GeneralOperator(
            size=operator.size,
            advance=operator.advance,
            inputs=operator.inputs,
            single=operator.instances == "single",
            keys=self.keys,
            **functions,
        )


class _Aggregate(_Meaning):
    """A+. Of several window instances each holds its states, a single one holds its tuples."""

    def general(self, **functions: Any) -> GeneralOperator:
        single = self.operator.instances == "single"
        output = self._output_of_tuples if single else self._output
        functions = {} if single else {"update": self._update}
        return super().general(output=output, **functions)

    def _values(self, arrival: Arrival) -> States:
        names = _names(arrival)
        return tuple(int(evaluate(one.value, names)) for one in self._reductions())

    def _reductions(self) -> Iterable[Any]:
        return self.operator.reductions

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        (window,) = windows
        values = self._values(arrival)
        return [values if window.state is None else self._combined(window, values)], []

    def _combined(self, window: WindowInstance, values: States) -> States:
        return tuple(
            int(evaluate(one.combine, {"a": a, "b": b}))
            for one, a, b in zip(self._reductions(), window.state, values, strict=True)
        )

    def _require_states(self, window: WindowInstance) -> None:
        """Raise for a state that does not fit its field when its window ends.

        On the way there it may leave the field: how far depends on the order of the tuples.
        """
        for one, state in zip(self._reductions(), window.state, strict=True):
            if not one.range.low <= state <= one.range.high:
                raise AggregateOverflowError(
                    one.name, state, one.range.low, one.range.high,
                    start=window.left, end=window.left + self.operator.size, key=_key(window),
                )  # fmt: skip

    def _output_of_tuples(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        values = [self._values(arrival) for arrival in window.state]
        left, key = window.left, window.key
        states = reduce(
            lambda state, value: self._combined(WindowInstance(state, left, key), value), values
        )
        return self._output((WindowInstance(states, left, key),))

    def _output(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        (window,) = windows
        operator = self.operator
        self._require_states(window)
        names = {
            "start": window.left,
            "end": window.left + operator.size,
            **dict(zip(operator.key_names or (), _key(window), strict=True)),
            **{one.name: at for one, at in zip(operator.reductions, window.state, strict=True)},
        }
        if operator.having is not None and evaluate(operator.having, names) == 0:
            return []
        values = tuple(_output_value(output, names) for output in operator.outputs or ())
        return [(window.key, values)]


class _Join(_Meaning):
    """J+. A window instance holds how many tuples have come, and those that it stores."""

    def general(self, **functions: Any) -> GeneralOperator:
        del functions
        return super().general(update=self._update, slide=self._slide)

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        count = windows[0].state[0] if windows[0].state else 0
        stored = [window.state[1] if window.state else [] for window in windows]
        pairs = []
        for other in stored[1 - arrival.input]:
            left, right = (other, arrival) if arrival.input else (arrival, other)
            names = {f"l.{name}": value for name, value in _names(left).items()}
            names |= {f"r.{name}": value for name, value in _names(right).items()}
            assert self.operator.match is not None
            if evaluate(self.operator.match, names) != 0:
                pairs.append((windows[0].key, (*self._row(left), *self._row(right))))
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


class _Forward(_Meaning):
    """O+ without a state: a tuple is put out for each of its keys."""

    def general(self, **functions: Any) -> GeneralOperator:
        del functions
        return super().general(update=self._update)

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        return [None for _ in windows], [(windows[0].key, self._row(arrival))]


def _names(arrival: Arrival) -> Mapping[str, int]:
    return {"timestamp": arrival.timestamp, **arrival.payload}


def _key(window: WindowInstance) -> States:
    assert isinstance(window.key, tuple)
    return window.key


def _output_value(output: Output, names: Mapping[str, int]) -> Any:
    value = evaluate(output.value, names)
    if output.per is None:
        return value
    divisor = evaluate(output.per, names)
    return Fraction(value, divisor) if divisor else None
