# SPDX-License-Identifier: Apache-2.0
"""What a window instance keeps of its tuples: one number, combined from one value per tuple."""

from dataclasses import dataclass, replace
import inspect
from itertools import product
from typing import Any

from host.errors import OperatorError
from host.expressions import Expression, Interval, Record, Symbol, evaluate, interval
from host.windowed.parts import identifier, require_width

__all__ = ["FUNCTIONS", "Reduction"]

#: How the functions that have a name combine two states, and take one out of the other.
FUNCTIONS: dict[str, tuple[str | None, str | None]] = {
    "count": ("a + b", "a - b"),
    "sum": ("a + b", "a - b"),
    "min": ("min(a, b)", None),
    "max": ("max(a, b)", None),
    "reduce": (None, None),
}
#: Bits that a sum has beside those of its value, unless its width is given.
_SUM_BITS = 32
#: Numbers that a user's function is tried on, within the range of its state.
_TRIED = (-7, -2, -1, 0, 1, 2, 3, 5, 8, 100)


@dataclass(frozen=True)
class Reduction:
    """A part of the state of a window instance, and how tuples change it (the seed's f_U).

    The first tuple's value is the state, and each further value is combined with it. A window
    instance has at least one tuple, so no neutral element is needed.

    Parameters
    ----------
    name : str
        Identifier, by which outputs read the state.
    function : str
        ``"count"``, ``"sum"``, ``"min"``, ``"max"``, or ``"reduce"`` with ``combine``.
    value : Expression, optional
        What a tuple contributes: a text or a function of the tuple. A count needs none. In a join,
        what a match contributes: a text over ``l.field`` and ``r.field``, or a function of a left
        and a right tuple.
    combine : Expression, optional
        For ``"reduce"``: text over two states ``a`` and ``b``, or a function of them. It must be
        associative and commutative, for the tuples of a window may be combined in any order, and
        must give a state again.
    inverse : Expression, optional
        For ``"reduce"``, if there is one: ``a`` without ``b``, in the same form. With an inverse,
        a window slides by what leaves it.
    bits, signed : int and bool, optional
        The state's field. By default that of the value, with 32 more bits for a sum. A sum that is
        too large for it when its window ends is an error.
    """

    name: str
    function: str
    value: Expression | None = None
    combine: Expression | None = None
    inverse: Expression | None = None
    bits: int | None = None
    signed: bool | None = None

    def __post_init__(self) -> None:
        identifier(self.name, "A reduction")
        if self.function not in FUNCTIONS:
            raise OperatorError(
                f"Reduction {self.name!r} must be one of {', '.join(FUNCTIONS)}, not "
                f"{self.function!r}."
            )
        given: Any = self.value
        if given is None:
            if self.function != "count":
                raise OperatorError(
                    f"Reduction {self.name!r}, a {self.function}, needs the value that a tuple "
                    f"contributes."
                )
            given = 1
        elif self.function == "count" and Expression.of(given, *_arguments(given)).text != "1":
            raise OperatorError(
                f"Reduction {self.name!r}, a count, has no value; sum a condition to count the "
                f"tuples for which it holds."
            )
        object.__setattr__(self, "value", Expression.of(given, *_arguments(given)))
        self._set_functions()

    def _set_functions(self) -> None:
        states = Symbol("a"), Symbol("b")
        for part, known in zip(("combine", "inverse"), FUNCTIONS[self.function], strict=True):
            given = getattr(self, part)
            source = known if given is None else Expression.of(given, *states)
            if self.function != "reduce" and given is not None and str(source) != known:
                raise OperatorError(
                    f"Reduction {self.name!r}, a {self.function}, has no `{part}` of its own; use "
                    f"function 'reduce'."
                )
            if source is None and (self.function, part) == ("reduce", "combine"):
                raise OperatorError(
                    f"Reduction {self.name!r} needs `combine`, an expression of two states a and b."
                )
            resolved = None if source is None else Expression.of(source)
            object.__setattr__(self, part, resolved)

    @property
    def range(self) -> Interval:
        """Range of the state; the reduction must be resolved."""
        assert self.bits is not None
        assert self.signed is not None
        return Interval.of_field(self.bits, self.signed)

    def resolved(self, names: dict[str, Interval]) -> "Reduction":
        """Return the reduction with its width, checked for fields of these ranges.

        Raises
        ------
        ExpressionError, OperatorError
            If an expression reads another name, if a value does not fit the state, or if the
            user's functions do not behave as reductions must.
        """
        assert self.value is not None
        found = interval(self.value, names)
        signed = found.signed if self.signed is None else self.signed
        extra = _SUM_BITS if FUNCTIONS[self.function][0] == "a + b" else 0
        most = 64 if signed else 63
        at = replace(
            self,
            signed=signed,
            bits=min(found.bits + extra + (signed and not found.signed), most)
            if self.bits is None
            else self.bits,
        )
        require_width(at.bits, signed, f"The state of reduction {self.name!r}")
        if not at.range.holds(found):
            raise OperatorError(
                f"Reduction {self.name!r} has a state from {at.range.low} to {at.range.high}, but "
                f"a tuple's value {self.value.text!r} can be from {found.low} to {found.high}; "
                f"give the state more bits."
            )
        at._check_functions()
        return at

    def _check_functions(self) -> None:
        """Raise for functions that leave the state, or that tried numbers show to be wrong."""
        if self.function != "reduce":
            return
        states = {"a": self.range, "b": self.range}
        for part in (self.combine, self.inverse):
            found = self.range if part is None else interval(part, states)
            if not self.range.holds(found):
                raise OperatorError(
                    f"Reduction {self.name!r} has states from {self.range.low} to "
                    f"{self.range.high}, but {str(part)!r} of two states can be from {found.low} "
                    f"to {found.high}; use function 'sum', or limit it with & or %."
                )
        tried = [value for value in _TRIED if self.range.low <= value <= self.range.high]
        for a, b, c in product(tried, repeat=3):
            ab = self._joined(a, b)
            rules = {
                "commutative": (ab, self._joined(b, a)),
                "associative": (self._joined(ab, c), self._joined(a, self._joined(b, c))),
            }
            if self.inverse is not None:
                back = evaluate(self.inverse, {"a": ab, "b": b})
                rules["undone by its inverse"] = (back, a)
            for rule, (one, other) in rules.items():
                if one != other:
                    raise OperatorError(
                        f"Reduction {self.name!r} must be {rule}, but its function "
                        f"{str(self.combine)!r} is not: for {a}, {b} and {c} it gives {one} and "
                        f"{other}."
                    )

    def _joined(self, a: int, b: int) -> int:
        assert self.combine is not None
        return int(evaluate(self.combine, {"a": a, "b": b}))

    def to_dict(self) -> dict[str, Any]:
        """Return the reduction as JSON-compatible values."""
        values: dict[str, Any] = {
            "name": self.name,
            "function": self.function,
            "value": str(self.value),
            "combine": str(self.combine),
            "bits": self.bits,
            "signed": self.signed,
        }
        return values if self.inverse is None else {**values, "inverse": self.inverse.text}


def _arguments(source: Any) -> tuple[Record, ...]:
    """Return what a function is called with: a tuple, or a left and a right one."""
    if callable(source) and len(inspect.signature(source).parameters) == 2:
        return Record("l"), Record("r")
    return (Record(),)
