# SPDX-License-Identifier: Apache-2.0
"""Predicates that decide which pairs match: difference bands, and any function of two tuples.

A predicate function is written once, with ``&``, ``|``, ``~`` and comparisons. The hardware
generator calls it with Amaranth values, and this module calls it with NumPy arrays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
import importlib
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from host.arrays import Array, Bools, UInt64s
from host.errors import UsageError
from host.reference.arrivals import Side, places, shifted

__all__ = [
    "Bounds",
    "DifferenceBand",
    "EQUAL",
    "OPEN",
    "Predicate",
    "evaluate",
    "load_predicate",
]

Keys: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class Bounds:
    """Bounds of the difference ``r - s`` of one field, both inclusive.

    Parameters
    ----------
    low, high : int or None
        None leaves that end open. ``low > high`` is allowed; no difference is then in bounds.
    """

    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, (int, np.integer)):
                raise TypeError(f"Bound {name!r} must be an integer or None, not {value!r}")
            object.__setattr__(self, name, None if value is None else int(value))

    @property
    def is_open(self) -> bool:
        """Whether every difference is within the bounds."""
        return self.low is None and self.high is None

    def hold(self, difference: int) -> bool:
        """Return whether ``difference``, a Python integer, is within the bounds."""
        return (self.low is None or self.low <= difference) and (
            self.high is None or difference <= self.high
        )

    def partners(self, values: Array, side: Side) -> tuple[UInt64s, UInt64s, Bools]:
        """Return the range of the other side's values that match each of ``values``.

        Parameters
        ----------
        values : array of int64 or uint64
            Values of a field in tuples of ``side``.
        side : Side
            Side of the tuples.

        Returns
        -------
        first, last : array of uint64
            Smallest and largest matching value, as :func:`host.reference.arrivals.places`.
        none : array of bool
            Whether no 64-bit value matches; ``first`` and ``last`` are then meaningless.
        """
        at = places(values).reshape(np.shape(values))
        # r - s within low..high:  s within r - high .. r - low,  r within s + low .. s + high.
        below, above = (self.low, self.high) if side is Side.S else (self.high, self.low)
        sign = 1 if side is Side.S else -1
        none = np.zeros(at.shape, dtype=np.bool_)
        first = np.zeros_like(at)
        last = np.full_like(at, np.iinfo(np.uint64).max)
        if below is not None:
            first, beyond = shifted(at, sign * below)
            if sign * below > 0:
                none |= beyond
        if above is not None:
            last, beyond = shifted(at, sign * above)
            if sign * above < 0:
                none |= beyond
        return first, last, none


#: The difference is zero.
EQUAL = Bounds(0, 0)
#: Any difference.
OPEN = Bounds()


@dataclass(frozen=True)
class DifferenceBand:
    """Predicate that bounds the difference ``r - s`` of each field.

    Call it with two tuples, that is objects with one attribute per field: integers, or arrays that
    broadcast. It returns which pairs match, exactly for all 64-bit values.

    Parameters
    ----------
    bounds : mapping of str to Bounds
        Bounds by field; the difference of any other field is not bounded.
    """

    bounds: Mapping[str, Bounds]

    def __post_init__(self) -> None:
        for name, bounds in self.bounds.items():
            if not isinstance(bounds, Bounds):
                raise TypeError(f"Field {name!r} needs Bounds, not {bounds!r}")
        object.__setattr__(self, "bounds", dict(self.bounds))

    def __hash__(self) -> int:
        return hash(frozenset(self.bounds.items()))

    @property
    def closed_fields(self) -> tuple[str, ...]:
        """Names of the fields that are bounded on at least one side."""
        return tuple(name for name, bounds in self.bounds.items() if not bounds.is_open)

    def __call__(self, r: Any, s: Any) -> Any:
        terms = [
            _within(getattr(r, name), getattr(s, name), self.bounds[name])
            for name in self.closed_fields
        ]
        if terms:
            return reduce(lambda left, right: left & right, terms)
        shapes = [np.shape(value) for pair in (r, s) for value in vars(pair).values()]
        shape = np.broadcast_shapes(*shapes)
        return np.ones(shape, dtype=np.bool_) if shape else True


#: A band, or any function of two tuples that returns a boolean or an array of booleans.
Predicate: TypeAlias = DifferenceBand | Callable[[Any, Any], Any]


def _within(r: Any, s: Any, bounds: Bounds) -> Any:
    """Return whether ``low <= r - s <= high``, for integers or arrays."""
    if isinstance(r, int) and isinstance(s, int):
        return bounds.hold(r - s)
    first, last, none = bounds.partners(np.asarray(r), Side.R)
    at = places(s).reshape(np.shape(s))
    return (at >= first) & (at <= last) & ~none


def evaluate(predicate: Predicate, r: Keys, s: Keys) -> Bools:
    """Apply ``predicate`` to pairs: element i of every column in ``r`` and ``s`` is pair i.

    A function that is not a band does its own arithmetic. It receives int64 arrays if all values
    are below 2**30 in magnitude, so that products of differences are exact. Otherwise it receives
    arrays of Python integers, which are not limited in size.
    """
    if isinstance(predicate, DifferenceBand):
        unknown = [name for name in predicate.closed_fields if name not in r]
        if unknown:
            raise UsageError(
                f"The band bounds field {unknown[0]!r}, but the tuples have {sorted(r)!r}."
            )
        matches = predicate(SimpleNamespace(**r), SimpleNamespace(**s))
    else:
        matches = predicate(_unbounded(r), _unbounded(s))
    shape = np.broadcast_shapes(*(np.shape(column) for column in (*r.values(), *s.values())))
    return np.broadcast_to(np.asarray(matches, dtype=np.bool_), shape)


def _unbounded(keys: Keys) -> SimpleNamespace:
    """Return columns whose arithmetic does not overflow, as attributes of an object."""
    return SimpleNamespace(**{name: _widened(column) for name, column in keys.items()})


def _widened(column: Array) -> Array:
    if column.size == 0 or (int(column.min()) > -(1 << 30) and int(column.max()) < 1 << 30):
        return column.astype(np.int64)
    return column.astype(object)


def load_predicate(reference: str) -> Callable[[Any, Any], Any]:
    """Import the custom predicate ``"module:function"`` that a manifest names.

    Raises
    ------
    UsageError
        If the module or the function does not exist.
    """
    module_name, separator, name = reference.partition(":")
    if not separator or not module_name or not name:
        raise UsageError(f"A custom predicate is 'module:function', not {reference!r}.")
    try:
        function: Callable[[Any, Any], Any] = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"Custom predicate {reference!r} cannot be imported ({error}); put its module on "
            f"PYTHONPATH."
        ) from error
    if not callable(function):
        raise UsageError(f"Custom predicate {reference!r} is not a function.")
    return function
