# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the kit, whose messages a command can print as they are.

Each message is one or two sentences that name the rule, the value, the place and the remedy. There
are two branches: :class:`UsageError` (the request or its data must change; exit code 2) and
:class:`FailureError` (the request was well formed, but the run failed; exit code 1). All exceptions
can be pickled, because Spark carries them from executors to the driver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
import reprlib
from typing import Any

from host.installation import PRESETS, command

__all__ = [
    "AcceleratorLimitError",
    "BuildError",
    "CapacityError",
    "DeviceError",
    "DeviceTimeoutError",
    "EpochError",
    "ExpressionError",
    "FailureError",
    "JoinError",
    "ManifestError",
    "MissingToolError",
    "OrderError",
    "UnsupportedTypeError",
    "UsageError",
    "unknown_column",
    "unusable_uri",
]

# The base classes of all errors of the kit.


def _rebuild(cls: type["JoinError"], args: tuple[Any, ...], state: dict[str, Any]) -> "JoinError":
    """Recreate an unpickled error without calling its own ``__init__``."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class JoinError(Exception):
    """Base of all errors of the kit; a message, or what a derived class makes a message of.

    Attributes
    ----------
    exit_code : int
        Exit code of a command that stops with this error.
    """

    exit_code = 1

    def __post_init__(self) -> None:
        super().__init__(self._message())

    def _message(self) -> str:
        """Return the message of an error with parameters of its own."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class UsageError(JoinError):
    """The request, or the data it names, must change."""

    exit_code = 2


class FailureError(JoinError):
    """The request was well formed, but the run failed."""

    exit_code = 1


# Errors of bundles that cannot be used or built.


@dataclass(eq=False, repr=False)
class ManifestError(UsageError):
    """A bundle cannot be used: it is missing, foreign, stale, or made for another processor.

    Parameters
    ----------
    path : object
        Path of the bundle or of its manifest file.
    reason : str
        What is wrong with the bundle, and what to do.
    """

    path: object
    reason: str

    def _message(self) -> str:
        return f"Bundle {str(self.path)!r} {self.reason}."


@dataclass(eq=False, repr=False)
class BuildError(FailureError):
    """Generating a bundle or compiling its simulator library did not finish.

    Parameters
    ----------
    what : str
        What was being built.
    reason : str
        Why it stopped.
    log : str
        Output of the tool that stopped.
    """

    what: str
    reason: str
    _: KW_ONLY
    log: str = ""

    def _message(self) -> str:
        return f"Building {self.what} failed: {self.reason}."


@dataclass(eq=False, repr=False)
class MissingToolError(FailureError):
    """A program that the request needs is not installed.

    Parameters
    ----------
    tool : str
        Name of the program.
    purpose : str
        What the program is needed for.
    remedy : str
        How to get the program.
    """

    tool: str
    purpose: str
    remedy: str

    def _message(self) -> str:
        return f"{self.tool} is needed {self.purpose}, but was not found; {self.remedy}."


# Errors of queries that ask for more than the given accelerator can do.


@dataclass(eq=False, repr=False)
class AcceleratorLimitError(UsageError):
    """The given accelerator cannot serve a valid query; another device, or none, can.

    Parameters
    ----------
    reason, remedy : str
        What the accelerator cannot do, and what would help.
    row : int, optional
        Row of a value that is out of range, counted from 0 over the whole stream.
    """

    reason: str
    remedy: str
    _: KW_ONLY
    row: int | None = None

    def _message(self) -> str:
        return f"{self.reason}; {self.remedy}."

    @staticmethod
    def out_of_range(
        column: str,
        value: object,
        low: int,
        high: int,
        *,
        remedy: str = "use a bundle with a wider field",
        row: int | None = None,
        of: str | None = None,
    ) -> "AcceleratorLimitError":
        """Return the error of a value that does not fit a field of the accelerator, or 64 bits.

        Parameters
        ----------
        column : str
            Column of the value.
        value : object
            The value, or the span of the column's values.
        low, high : int
            Smallest and largest value that fit.
        remedy : str
            What the user can do.
        row : int, optional
            Row of the value.
        of : str, optional
            What the range is one of; by default, of 64 bits if it is as large, else of a field.
        """
        place = "" if row is None else f" in row {row} (the first is 0)"
        if of is None:
            # No accelerator is to blame for a range that no field exceeds.
            of = "64 bits" if high - low >= (1 << 64) - 2 else "the accelerator's field"
        return AcceleratorLimitError(
            f"Column {column!r} holds {value}{place}, outside the range {low} .. {high} of {of}",
            remedy,
            row=row,
        )


class CapacityError(AcceleratorLimitError):
    """A window is larger than the accelerator can hold.

    That of a count-based window is known before any tuple is sent; a time-based window can outgrow
    the cores while tuples arrive.

    Parameters
    ----------
    needed : int or None
        Number of tuples of one side in the window; None if it is only known that they are more than
        there is room for.
    capacity : int
        Number of tuples of one side that the accelerator holds.
    side : object, optional
        Side of the window.
    is_timed : bool
        Whether the window is time-based.
    ordinal : int, optional
        Number, within its side, of the tuple that found no room in it; the first is 0.
    cores : int
        Number of cores in the suggested command.
    engine : str
        Engine in the suggested command.
    """

    def __init__(
        self,
        needed: int | None,
        capacity: int,
        *,
        side: object | None = None,
        is_timed: bool = False,
        ordinal: int | None = None,
        cores: int = 4,
        engine: str = "scan",
    ) -> None:
        self.needed, self.capacity, self.side, self.ordinal = needed, capacity, side, ordinal
        of_side = "" if side is None else f" of side {_name(side)}"
        build = _build_command(2 * capacity if needed is None else needed, cores, engine)
        if is_timed:
            place = "" if ordinal is None else f" with its tuple number {ordinal} (the first is 0)"
            goal = "more" if needed is None else f"the {needed} tuples needed"
            super().__init__(
                f"The time-based window{of_side} outgrew the capacity of {capacity} tuples{place}",
                f"shorten the window, or build a bundle that holds {goal}: {build}",
            )
        else:
            super().__init__(
                f"A window{of_side} of {needed} tuples is larger than the accelerator's capacity "
                f"of {capacity} tuples per side",
                f"a bundle that holds it: {build}; for device 'sim:', build=True (--build) makes "
                f"one",
            )


def _build_command(needed: int, cores: int, engine: str) -> str:
    """Return a command that builds a bundle for at least ``needed`` tuples per side."""
    sub_window = 1 << max(0, (-(-needed // cores) - 1).bit_length())
    words = f"--preset {PRESETS[engine]} --cores {cores} --sub-window {sub_window} --output DIR"
    return f"`{command(f'sim build {words}')}`"


def _name(side: object) -> str:
    return str(getattr(side, "name", side))


# Errors of columns, values and predicates that an input lacks or a device cannot compare.

#: Largest number of column names that a message lists.
_LISTED = 20


def unknown_column(column: str, columns: Sequence[str], table: str = "the table") -> UsageError:
    """Return the error of a column that a table, of this name and with these columns, lacks."""
    listing = ", ".join(repr(name) for name in columns[:_LISTED]) or "none"
    if len(columns) > _LISTED:
        listing += f" and {len(columns) - _LISTED} more"
    return UsageError(
        f"There is no column {column!r} in {table}{_near(column, columns)}; its columns: {listing}."
    )


@dataclass(eq=False, repr=False)
class UnsupportedTypeError(UsageError):
    """The type of a column cannot be used as the query requires.

    Parameters
    ----------
    column : str
        The column.
    type_name : object
        Type of the column; None if it has none, because no row has a value in it.
    supported : str
        Types that can be used.
    """

    column: str
    type_name: object
    supported: str = ""

    def _message(self) -> str:
        if self.type_name is None:
            return (
                f"Column {self.column!r} has no type, because no row has a value in it: a CSV or "
                f"JSON file tells the types of its columns by their values only; add a row that "
                f"has a value there, or give the column a type, by a cast or in a Parquet file."
            )
        return (
            f"Column {self.column!r} has type {self.type_name}, which cannot be used here; "
            f"cast it to one of: {self.supported}."
        )


def _near(column: str, columns: Sequence[str]) -> str:
    """Return a hint at the column that may be meant, if one is spelled much like ``column``."""
    spelled = {name.strip().casefold(): name for name in columns}
    same = spelled.get(column.strip().casefold())
    if same is not None:
        rule = "spaces" if same.strip() == column.strip() else "upper and lower case"
        return f", but there is {same!r}: {rule} count in names, so write {same!r}"
    close = get_close_matches(column.casefold(), list(spelled), n=1)
    return f"; perhaps {spelled[close[0]]!r} is meant" if close else ""


# Errors of devices that cannot be addressed, are busy, or fail.


def unusable_uri(uri: str, reason: str) -> UsageError:
    """Return the error of a device URI without a known scheme, or that lacks what that needs."""
    return UsageError(
        f"Device {uri!r} {reason}; a device is 'sim:BUNDLE', 'software:' or 'software:BUNDLE', "
        f"where BUNDLE is a folder that `{command('sim build --output BUNDLE')}` wrote (for "
        f"'software:', `{command('hdl generate')}` is enough), "
        f"'serial:PATH?baud=N&bundle=BUNDLE', 'tcp:HOST:PORT?bundle=BUNDLE' or "
        f"'udp:HOST:PORT?bundle=BUNDLE' for a board, 'axi:CARD?bundle=BUNDLE' for a card behind "
        f"XDMA, 'pynq:FILE.bit?bundle=BUNDLE' for a PYNQ overlay, 'xrt:FILE.xclbin?bundle=BUNDLE' "
        f"for a kernel of Vitis, or 'PACKAGE.MODULE:PLACE', where "
        f"that module has a function open_device(PLACE)."
    )


class DeviceError(FailureError):
    """A device cannot be used, broke its contract or stopped working.

    Parameters
    ----------
    message : str
        The message.
    fault : str
        What is wrong: ``"busy"`` if others kept the device until a deadline; ``"silent"`` or
        ``"garbled"`` if nobody answered the greeting over a board's link and nothing or noise was
        heard, ``"other"`` if another board did, ``"lost"`` if the link broke while it was in use;
        empty for anything else.
    """

    fault = ""

    def __init__(self, message: str, fault: str = "") -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(eq=False, repr=False)
class DeviceTimeoutError(DeviceError):
    """A device made no progress before the deadline.

    Parameters
    ----------
    uri : str
        URI of the device.
    waited : str
        How long the caller waited, with its unit.
    counters : Mapping of str to int
        The device's counters at that moment.
    """

    uri: str
    waited: str
    counters: Mapping[str, int]

    def _message(self) -> str:
        listing = ", ".join(f"{name} {value}" for name, value in self.counters.items())
        return (
            f"Device {self.uri!r} made no progress within {self.waited}; its counters: "
            f"{listing or 'none'}."
        )


# The error of an epoch: of its number, of its cores, or of the room that these cores have.


@dataclass(eq=False, repr=False)
class EpochError(UsageError):
    """An epoch is refused; the epoch before it stays in force.

    Parameters
    ----------
    number : int
        Number of the epoch that is refused.
    rule, remedy : str
        Which rule the epoch breaks, with the value, and what would help.
    place : int or None
        Tuples of both sides that were sent before the epoch was refused; None if it was refused
        before the join began.
    """

    number: int
    rule: str
    remedy: str
    place: int | None = None

    def _message(self) -> str:
        where = "" if self.place is None else f" after {self.place} tuples"
        return f"Epoch {self.number} is refused{where}: {self.rule}; {self.remedy}."


# The error of an expression.


@dataclass(eq=False, repr=False)
class ExpressionError(UsageError):
    """An expression is not in its language, does not suit its columns, or can leave 64 bits.

    Parameters
    ----------
    text : str
        The expression, as far as it is known.
    rule : str
        The rule that it breaks, as a sentence without a full stop.
    remedy : str
        What to write in its place.
    place : (int, int), optional
        Where the part that breaks the rule begins and ends in the text, which the message shows.
    """

    text: str
    rule: str
    remedy: str
    place: tuple[int, int] | None = None

    def _message(self) -> str:
        said = f"Expression {self.text!r}: {self.rule}; {self.remedy}."
        if self.place is None:
            return said
        begin, end = self.place
        return f"{said}\n    {self.text}\n    {' ' * begin}{'^' * max(1, end - begin)}"


# Errors of rows that are out of order, have no place in it, or are repeated.

#: Largest number of columns of a row that a message shows.
_SHOWN = 6


@dataclass(eq=False, repr=False)
class OrderError(UsageError):
    """A row is out of order, has no place in it, or is repeated, against what was declared.

    Parameters
    ----------
    message : str
        The message.
    where : object
        Side, column or source of the row.
    position : int or None
        Number of the row, counted from 0; None if the user cannot look it up.
    value, previous : object
        What the row has, and the row before it.
    part : int, optional
        Part of the input in which ``position`` counts, if there are several.
    """

    message: str
    where: object
    position: int | None
    value: object = None
    previous: object = None
    part: int | None = None

    def _message(self) -> str:
        return self.message

    @staticmethod
    def disorder(
        where: object,
        position: int,
        previous: object,
        value: object,
        *,
        part: int | None = None,
        source: str | None = None,
    ) -> "OrderError":
        """Return the error of an input, declared sorted, in which time goes backwards.

        Parameters
        ----------
        where, position, previous, value, part
            As for the class.
        source : str, optional
            What that part is called, such as ``"file 'a.parquet'"``, if it has a name.
        """
        if source is None and part is not None:
            source = f"the input's partition {part}"
        of_source = "" if source is None else f" of {source}"
        message = (
            f"Time goes backwards in {_place(where)}: row {position}{of_source} (the first is 0) "
            f"has {value} after {previous}; sort the input by its order column."
        )
        return OrderError(message, where, position, value, previous, part)

    @staticmethod
    def false_claim(
        source: str,
        by: Sequence[str],
        position: int,
        row: Mapping[str, object],
        previous: Mapping[str, object] | None = None,
        *,
        part: int | None = None,
    ) -> "OrderError":
        """Return the error of rows that are not sorted, or not distinct, as it was declared.

        Parameters
        ----------
        source : str
            Where the rows come from.
        by : sequence of str
            The columns that they were declared to be sorted by, or to be distinct in.
        position, part
            As for the class.
        row : mapping
            Values of the columns in the row.
        previous : mapping, optional
            Their values in the row before it; without them, the rows are not distinct.
        """
        place = "" if part is None else f" of part {part}"
        if previous is None:
            claim, seen = "distinct", "as another row has"
            remedy = f"use distinct({', '.join(map(repr, by))})"
        else:
            claim, seen, remedy = "sorted", f"after {_shown(previous)}", "sort them first"
        message = (
            f"The rows of {source} are declared to be {claim} by {', '.join(by)}, but row "
            f"{position}{place} (the first is 0) has {_shown(row)} {seen}; {remedy}, or do not "
            f"declare it."
        )
        return OrderError(message, source, position, row, previous, part)

    @staticmethod
    def null(
        column: str, position: int | None = None, row: Mapping[str, object] | None = None
    ) -> "OrderError":
        """Return the error of a null in the column that gives the order of arrival.

        Parameters
        ----------
        column : str
            The column.
        position : int, optional
            As for the class.
        row : mapping, optional
            The row itself, as far as its columns are available.
        """
        places = [] if position is None else [f"row {position} (the first is 0)"]
        if row:
            places.append(f"the row with {_shown(row)}")
        message = (
            f"Order column {column!r} is null in {', '.join(places)}; a row without a place in "
            f"time cannot be joined: drop it, or fill the column."
        )
        return OrderError(message, column, position, row)


def _place(where: object) -> str:
    name = getattr(where, "name", None)
    return f"column {where!r}" if name is None else f"side {name}"


def _shown(row: Mapping[str, object]) -> str:
    """Return the first columns of a row with their values in one line; long values are cut."""
    shown = [f"{name}={_value(value)}" for name, value in list(row.items())[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(row) > _SHOWN else shown)


def _value(value: object) -> str:
    plain = value is None or isinstance(value, (str, bytes, int, float, list, dict))
    text = "null" if value is None else reprlib.repr(value) if plain else str(value)
    return " ".join(text.split())
