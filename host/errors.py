# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong, as exceptions that a command can print as they are.

Each message is one sentence or two that name the rule, the value, the place and the remedy. The two
branches are :class:`UsageError` (the request or its data must change; exit code 2) and
:class:`FailureError` (the request was well formed, the run broke; exit code 1). All of them survive
pickling, because Spark carries them from executors to the driver.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from host.presets import PRESETS

__all__ = [
    "AcceleratorLimitError",
    "BuildError",
    "CapacityError",
    "DeviceBusyError",
    "DeviceError",
    "DeviceTimeoutError",
    "DeviceUriError",
    "DisorderError",
    "DuplicateKeyError",
    "FailureError",
    "ForeignManifestError",
    "JoinError",
    "KeyRangeError",
    "ManifestError",
    "MissingManifestError",
    "MissingToolError",
    "NullOrderError",
    "PredicateError",
    "StaleManifestError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "UsageError",
    "WindowOverflowError",
]


def _rebuild(cls: type["JoinError"], args: tuple[Any, ...], state: dict[str, Any]) -> "JoinError":
    """Recreate an unpickled error without calling its own ``__init__``."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class JoinError(Exception):
    """Base of all errors of the kit.

    Attributes
    ----------
    exit_code : int
        What a command returns to the shell when it stops with this error.
    """

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class UsageError(JoinError):
    """The request, or the data it names, must change."""

    exit_code = 2


class FailureError(JoinError):
    """The request was well formed, but the run broke."""

    exit_code = 1


def _build_command(needed: int, cores: int, engine: str) -> str:
    """Return the command that makes a bundle of at least ``needed`` tuples per side."""
    sub_window = 1 << max(0, (-(-needed // cores) - 1).bit_length())
    return (
        f"`python -m sim build --preset {PRESETS[engine]} --cores {cores} --sub-window "
        f"{sub_window} --output DIR`"
    )


class AcceleratorLimitError(UsageError):
    """The accelerator at hand cannot serve a query that makes sense; another one, or none, can.

    Parameters
    ----------
    reason, remedy : str
        What it cannot do, and what would help.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}.")


class CapacityError(AcceleratorLimitError):
    """A window is larger than the accelerator can hold; known before any tuple is sent.

    Parameters
    ----------
    needed, capacity : int
        Tuples of one side: those of the window, and those the accelerator holds.
    side : object, optional
        Side whose window it is.
    cores : int
        Cores for the suggested command.
    engine : str
        Engine for it.
    """

    def __init__(
        self,
        needed: int,
        capacity: int,
        *,
        side: object | None = None,
        cores: int = 4,
        engine: str = "scan",
    ) -> None:
        self.needed = needed
        self.capacity = capacity
        self.side = side
        of_side = "" if side is None else f" of side {_name(side)}"
        super().__init__(
            f"A window{of_side} of {needed} tuples is larger than the accelerator's capacity of "
            f"{capacity} tuples per side",
            f"a bundle that holds it: {_build_command(needed, cores, engine)}; where no device is "
            f"named, build=True (--build) makes one",
        )


class WindowOverflowError(FailureError):
    """A time-based window outgrew the cores while tuples arrived.

    Parameters
    ----------
    side : object
        Side whose window it is.
    capacity : int
        Tuples of one side that the accelerator holds.
    ordinal : int, optional
        Number of the tuple, among those of its side, that found no room; the first is 0.
    needed : int, optional
        Capacity that the whole input needs, when it is known.
    cores : int
        Cores for the suggested command.
    engine : str
        Engine for it.
    """

    def __init__(
        self,
        side: object,
        capacity: int,
        ordinal: int | None = None,
        *,
        needed: int | None = None,
        cores: int = 4,
        engine: str = "scan",
    ) -> None:
        self.side = side
        self.capacity = capacity
        self.ordinal = ordinal
        self.needed = needed
        place = "" if ordinal is None else f" with its tuple number {ordinal} (the first is 0)"
        least = 2 * capacity if needed is None else needed
        goal = "more" if needed is None else f"the {needed} tuples needed"
        super().__init__(
            f"The time-based window of side {_name(side)} outgrew the capacity of {capacity} "
            f"tuples{place}; shorten the window, or build a bundle that holds {goal}: "
            f"{_build_command(least, cores, engine)}."
        )


class DisorderError(UsageError):
    """Time goes backwards in an input that was declared sorted.

    Parameters
    ----------
    where : object
        Side or column.
    position : int
        Row (from 0) whose value is less than the one before it.
    previous, value : object
        The two values.
    """

    def __init__(self, where: object, position: int, previous: object, value: object) -> None:
        self.where = where
        self.position = position
        self.previous = previous
        self.value = value
        super().__init__(
            f"Time goes backwards in {_place(where)}: row {position} (the first is 0) has "
            f"{value} after {previous}; sort the input by its order column."
        )


class ManifestError(UsageError):
    """A bundle cannot be used; its subclasses say why.

    Parameters
    ----------
    path : object
        Bundle or manifest file.
    reason : str
        What is wrong with it, and what to do.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(f"Bundle {self.path!r} {reason}.")


class MissingManifestError(ManifestError):
    """There is no bundle at this path, or a part of it is missing."""


class ForeignManifestError(ManifestError):
    """The file is no manifest of this kit, or of a format that this version does not read."""


class StaleManifestError(ManifestError):
    """The parts of the bundle do not belong together: one was changed after it was generated."""


class DeviceUriError(UsageError):
    """A device URI has no known scheme, or lacks what its scheme needs.

    Parameters
    ----------
    uri : str
        As given.
    reason : str
        What is wrong with it.
    """

    def __init__(self, uri: str, reason: str) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(
            f"Device {uri!r} {reason}; a device is 'sim:BUNDLE', 'software:' or 'software:BUNDLE', "
            f"where BUNDLE is a folder that `python -m hdl generate` wrote."
        )


class DeviceError(FailureError):
    """A device broke its contract or stopped working."""


class DeviceTimeoutError(DeviceError):
    """A device made no progress before the deadline.

    Parameters
    ----------
    uri : str
        The device.
    waited : str
        How long the caller waited, with its unit.
    counters : Mapping of str to int
        The device's counters at that moment.
    """

    def __init__(self, uri: str, waited: str, counters: Mapping[str, int]) -> None:
        self.uri = uri
        self.waited = waited
        self.counters = dict(counters)
        listing = ", ".join(f"{name} {value}" for name, value in self.counters.items())
        super().__init__(
            f"Device {uri!r} made no progress within {waited}; its counters: {listing or 'none'}."
        )


class DeviceBusyError(DeviceError):
    """Devices that one process at a time can use were not free before the deadline.

    Parameters
    ----------
    devices : sequence of str
        Any of which would have done.
    waited : str
        How long the caller waited, with its unit.
    holders : Mapping of str to str
        Who holds which of them, as far as it is known.
    remedy : str
        What the user can do.
    """

    def __init__(
        self, devices: Sequence[str], waited: str, holders: Mapping[str, str], remedy: str
    ) -> None:
        self.devices = tuple(devices)
        self.waited = waited
        self.holders = dict(holders)
        self.remedy = remedy
        several = len(self.devices) > 1
        listing = ", ".join(repr(device) for device in self.devices)
        held = "; ".join(f"{device!r} is held by {by}" for device, by in self.holders.items())
        super().__init__(
            f"{'None of the devices' if several else 'Device'} {listing} "
            f"{'became' if several else 'did not become'} free within {waited}; "
            f"{held or 'nobody says that he holds it'}; {remedy}."
        )


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

    def __init__(self, what: str, reason: str, *, log: str = "") -> None:
        self.what = what
        self.reason = reason
        self.log = log
        super().__init__(f"Building {what} failed: {reason}.")


class MissingToolError(FailureError):
    """A program that the request needs is not installed.

    Parameters
    ----------
    tool : str
        Name of the program.
    purpose : str
        What it is needed for.
    remedy : str
        How to get it.
    """

    def __init__(self, tool: str, purpose: str, remedy: str) -> None:
        self.tool = tool
        self.purpose = purpose
        self.remedy = remedy
        super().__init__(f"{tool} is needed {purpose}, but was not found; {remedy}.")


class UnknownColumnError(UsageError):
    """A table has no column of that name.

    Parameters
    ----------
    column : str
        The name asked for.
    columns : Sequence of str
        Those that the table has.
    table : str
        The table, by the name that the user knows.
    """

    def __init__(self, column: str, columns: Sequence[str], *, table: str = "the table") -> None:
        self.column = column
        self.columns = tuple(columns)
        self.table = table
        listing = ", ".join(repr(name) for name in self.columns) or "none"
        super().__init__(f"There is no column {column!r} in {table}; its columns: {listing}.")


class UnsupportedTypeError(UsageError):
    """A column's type cannot be compared by the accelerator.

    Parameters
    ----------
    column : str
        The column.
    type_name : object
        Its type.
    supported : str
        The types that would do.
    """

    def __init__(self, column: str, type_name: object, supported: str) -> None:
        self.column = column
        self.type_name = str(type_name)
        self.supported = supported
        super().__init__(
            f"Column {column!r} has type {self.type_name}, which cannot be compared here; "
            f"cast it to one of: {supported}."
        )


class KeyRangeError(UsageError):
    """A value does not fit the accelerator's field.

    Parameters
    ----------
    column : str
        Where the value stands.
    value : object
        The value, or the span of the column's values.
    low, high : int
        Least and greatest value that fit.
    remedy : str
        What the user can do.
    row : int, optional
        Row (from 0) of the value, counted over the whole of a stream.
    """

    def __init__(
        self,
        column: str,
        value: object,
        low: int,
        high: int,
        *,
        remedy: str = "use a bundle with a wider field",
        row: int | None = None,
    ) -> None:
        self.column = column
        self.value = value
        self.low = low
        self.high = high
        self.remedy = remedy
        self.row = row
        place = "" if row is None else f" in row {row} (the first is 0)"
        super().__init__(
            f"Column {column!r} holds {value}{place}, outside the range {low} .. {high} of the "
            f"accelerator's field; {remedy}."
        )


class NullOrderError(UsageError):
    """The column that gives the order of arrival holds a null.

    Parameters
    ----------
    column : str
        The column.
    position : int
        Row (from 0) of the first null.
    """

    def __init__(self, column: str, position: int) -> None:
        self.column = column
        self.position = position
        super().__init__(
            f"Order column {column!r} is null in row {position} (the first is 0); a row without a "
            f"place in time cannot be joined: drop it, or fill the column."
        )


class PredicateError(UsageError):
    """A predicate cannot be loaded, or names a field that the tuples do not have."""


def _name(side: object) -> str:
    return str(getattr(side, "name", side))


def _place(where: object) -> str:
    name = getattr(where, "name", None)
    return f"column {where!r}" if name is None else f"side {name}"


class DuplicateKeyError(UsageError):
    """A row stands twice where every row must be different.

    Parameters
    ----------
    key : object
        The values that are compared.
    row : int
        Number of the second of the equal rows; the first row is 0.
    """

    def __init__(self, key: object, row: int) -> None:
        self.key = key
        self.row = row
        super().__init__(
            f"Row {row} (the first is 0) repeats {key!r}; remove the duplicates, or leave them out "
            f"with fail_on_duplicate=False."
        )
