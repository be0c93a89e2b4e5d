# SPDX-License-Identifier: Apache-2.0
"""Errors of windowed operators: their expressions, their descriptions, and what they compute."""

from host.errors.base import UsageError

__all__ = ["AggregateOverflowError", "ExpressionError", "OperatorError"]


class ExpressionError(UsageError):
    """An expression is not in the language of operators, or can leave 64 bits.

    Parameters
    ----------
    text : str
        The expression, as far as it is known.
    rule : str
        The rule that it breaks, as a sentence without a full stop.
    remedy : str
        What to write in its place.
    """

    def __init__(self, text: str, rule: str, remedy: str) -> None:
        self.text = text
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"Expression {text!r}: {rule}; {remedy}.")


class OperatorError(UsageError):
    """The description of an operator contradicts itself, or the tuples do not fit it."""


class AggregateOverflowError(UsageError):
    """The state of a window instance does not fit the bits that the description gives it.

    Parameters
    ----------
    reduction : str
        Name of the reduction.
    value : int
        The value.
    low, high : int
        Smallest and largest value that fit.
    start, end : int
        Boundaries of the window.
    key : tuple of int
        Key of the window instance.
    """

    def __init__(
        self,
        reduction: str,
        value: int,
        low: int,
        high: int,
        *,
        start: int,
        end: int,
        key: tuple[object, ...],
    ) -> None:
        self.reduction = reduction
        self.value = value
        self.window = (start, end)
        self.key = key
        of_key = f" of key {key}" if key else ""
        super().__init__(
            f"Reduction {reduction!r} is {value} in window [{start}, {end}){of_key}, outside the "
            f"range {low} .. {high} of its state; give it more bits, or smaller windows."
        )
