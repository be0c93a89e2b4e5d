# SPDX-License-Identifier: Apache-2.0
"""Numbers that a caller gives, taken exactly as they are written."""

from fractions import Fraction

from host.errors import UsageError

__all__ = ["positive", "share"]


def positive(value: object, what: str) -> Fraction:
    """Return a positive number exactly as it is written, also in a text; raise for any other."""
    number = _number(value)
    if number is None:
        raise UsageError(f"A number of {what} must be above 0, not {value!r}.")
    return number


def share(value: object, what: str) -> Fraction:
    """Return a share above 0 and up to 1 exactly as it is written; raise for any other value."""
    number = _number(value)
    if number is None or number > 1:
        raise UsageError(f"The {what} is a share above 0 and up to 1, not {value!r}.")
    return number


def _number(value: object) -> Fraction | None:
    """Return a number above 0; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return None
    return number if number > 0 else None
