# SPDX-License-Identifier: Apache-2.0
"""What all kinds of described operators have in common: keys, states and outputs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from host.errors import AggregateOverflowError
from host.expressions import Expression, evaluate
from host.reference.general_operator import GeneralOperator
from host.reference.window_state import Arrival, WindowInstance
from host.windowed.operator import WindowedOperator
from host.windowed.parts import Output
from host.windowed.reduction import Reduction

__all__ = ["Meaning", "Reducing", "States", "key_of", "names_of"]

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
        names: dict[str, Any] = {
            "start": window.left,
            "end": window.left + operator.size,
            **dict(zip(operator.key_names or (), key_of(window), strict=True)),
            **{one.name: at for one, at in zip(operator.reductions, states, strict=True)},
        }
        if operator.having is not None and not _evaluated(operator.having, names):
            return []
        return [tuple(_output_value(output, names) for output in operator.outputs or ())]

    def _require_states(self, window: WindowInstance, states: tuple[int | None, ...]) -> None:
        """Raise for a state that does not fit its field when its window ends.

        On the way there it may leave the field: how far depends on the order of the tuples.
        """
        for one, state in zip(self.operator.reductions, states, strict=True):
            if state is not None and not one.range.low <= state <= one.range.high:
                raise AggregateOverflowError(
                    one.name, state, one.range.low, one.range.high,
                    start=window.left, end=window.left + self.operator.size, key=key_of(window),
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
