# SPDX-License-Identifier: Apache-2.0
"""Durations, exact to the nanosecond, and numbers taken exactly as a caller writes them."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
import re

from host.errors import UsageError

__all__ = [
    "Duration",
    "as_duration",
    "parse_duration",
    "parse_size",
    "positive",
    "share",
    "size_text",
    "whole",
]

# Durations, exact to the nanosecond, and their text form.

#: Nanoseconds in each unit, by its spellings; the first spelling is used for messages.
UNITS: dict[tuple[str, ...], int] = {
    ("w", "week", "weeks"): 604_800_000_000_000,
    ("d", "day", "days"): 86_400_000_000_000,
    ("h", "hour", "hours"): 3_600_000_000_000,
    ("min", "minute", "minutes"): 60_000_000_000,
    ("s", "sec", "second", "seconds"): 1_000_000_000,
    ("ms", "millisecond", "milliseconds"): 1_000_000,
    ("us", "microsecond", "microseconds"): 1_000,
    ("ns", "nanosecond", "nanoseconds"): 1,
}

_SPELLED = {name: size for names, size in UNITS.items() for name in names}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)")
_NUMBER = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
#: What SQL writes around a length: INTERVAL 5 SECONDS, INTERVAL '5' SECONDS, INTERVAL '5 seconds'.
_INTERVAL = re.compile(r"interval\b\s*(.*)", re.DOTALL)
#: SQL's own form, INTERVAL '1 02:03:04.5' DAY TO SECOND, in which Spark prints intervals.
_DAY_TO_SECOND = re.compile(r"'([+-]?)(\d+) (\d+):(\d+):(\d+(?:\.\d+)?)'\s*day to second")
#: Units whose length depends on the date.
_CALENDAR = re.compile(r"\d\s*'?\s*(months?|years?)\b")


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time, which may be negative, as the bound of a difference.

    Parameters
    ----------
    nanoseconds : int
        Length in nanoseconds.
    """

    nanoseconds: int

    def __neg__(self) -> "Duration":
        return Duration(-self.nanoseconds)

    def __str__(self) -> str:
        """Return the duration in the largest unit that divides it."""
        for names, size in list(UNITS.items())[1:]:  # in days rather than in weeks
            if self.nanoseconds % size == 0 and self.nanoseconds:
                return f"{self.nanoseconds // size}{names[0]}"
        return "0s"


def as_duration(length: timedelta) -> Duration:
    """Return ``length`` as a :class:`Duration`."""
    microseconds = (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds
    return Duration(microseconds * 1_000)


def parse_duration(text: str, what: str = "") -> Duration:
    """Read a duration such as ``180min``, ``1h30min``, ``-2.5 s``, ``3 minutes`` or, as SQL writes
    it, ``INTERVAL 5 SECONDS``, ``INTERVAL '5' SECONDS`` or ``INTERVAL '0 00:00:05' DAY TO SECOND``.

    Parameters
    ----------
    text : str
        Text of the duration.
    what : str
        Beginning of an error message: what the duration is for.

    Raises
    ------
    UsageError
        If the text is not a duration, or is finer than a nanosecond.
    """
    body = text.strip().lower()
    if interval := _INTERVAL.fullmatch(body):
        if parts := _DAY_TO_SECOND.fullmatch(interval[1].strip()):
            lengths = map("".join, zip(parts.groups()[1:], ("d", "h", "min", "s"), strict=True))
            return parse_duration(parts[1] + "".join(lengths), what)
        body = interval[1].replace("'", "").strip()
    sign = -1 if body.startswith("-") else 1
    body = body[1:] if body[:1] in ("-", "+") else body
    total, position = Fraction(0), 0
    while part := _PART.match(body, position):
        size = _SPELLED.get(part[2])
        if size is None:
            break
        total += Fraction(part[1]) * size
        position = part.end()
    if not body or position != len(body) or total.denominator != 1:
        units = ", ".join(names[0] for names in UNITS)
        given = f"{what} {text!r}".strip()
        if calendar := _CALENDAR.search(body):
            raise UsageError(
                f"{given} is not a duration: a {calendar[1].rstrip('s')} has no fixed length; "
                f"write days, like 30d."
            )
        if _NUMBER.fullmatch(body):
            raise UsageError(
                f"{given} is not a duration, as it has no unit: for columns of time append one out "
                f"of {units}, like {text.strip()}s; for columns of numbers write the number "
                f"without quotes."
            )
        raise UsageError(
            f"{given} is not a duration; write numbers with a unit out of {units}, "
            f"like 180min or 1h30min; only columns of numbers take a plain number."
        )
    return Duration(sign * int(total))


# Numbers that a caller gives, taken exactly as they are written.


def whole(value: object, what: str, least: int = 1) -> int:
    """Return a whole number that is large enough; raise for any other value.

    Parameters
    ----------
    value : object
        The value.
    what : str
        Beginning of the message, such as ``"A latency is a whole number of cycles"``.
    least : int
        The least one that will do.

    Raises
    ------
    UsageError
        If the value is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{what} from {least} on, not {value!r}.")
    return value


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


# Sizes of memory.

#: Bytes in each unit; as in a shop, and with an "i" as a processor counts.
_SIZES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b)")


def parse_size(text: str, what: str) -> int:
    """Read a number of bytes such as ``1GB``, ``1.5 GiB`` or ``700MB``.

    Parameters
    ----------
    text : str
        Text of the size.
    what : str
        Beginning of an error message: what the size is for.

    Raises
    ------
    UsageError
        If the text is no size.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _SIZES:
        raise UsageError(f"{what} takes a size such as 1GB, 1.5GiB or 700MB, not {text!r}.")
    return int(Fraction(found[1]) * _SIZES[found[2]])


def size_text(size: int) -> str:
    """Return a number of bytes in megabytes, or in bytes if they are few."""
    return f"{size / 10**6:,.0f} MB" if size >= 10**6 else f"{size:,} bytes"
