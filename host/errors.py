# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the kit, whose messages a command can print as they are.

Each message is one or two sentences that name the rule, the value, the place and the remedy. There
are two branches: :class:`UsageError` (the request or its data must change; exit code 2) and
:class:`FailureError` (the request was well formed, but the run failed; exit code 1). All exceptions
can be pickled, because Spark carries them from executors to the driver.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
import reprlib
from typing import Any

from host.installation import PRESETS, command

__all__ = [
    "AcceleratorLimitError",
    "AggregateOverflowError",
    "BuildError",
    "CacheError",
    "CapacityError",
    "CoreFailureError",
    "DeviceBusyError",
    "DeviceError",
    "DeviceLockError",
    "DeviceTimeoutError",
    "DeviceUriError",
    "DisorderError",
    "DuplicateKeyError",
    "EpochCapacityError",
    "EpochCoresError",
    "EpochError",
    "EpochOrderError",
    "ExpressionError",
    "FailureError",
    "FalseDistinctError",
    "FalseOrderError",
    "ForeignLibraryError",
    "ForeignManifestError",
    "IllegalWordError",
    "JoinError",
    "KeyRangeError",
    "LinkError",
    "LinkLostError",
    "LinkMismatchError",
    "LinkSilentError",
    "ManifestError",
    "MemoryFaultError",
    "MissingManifestError",
    "MissingToolError",
    "NullOrderError",
    "OperatorError",
    "PredicateError",
    "StaleManifestError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "UntypedColumnError",
    "UsageError",
    "WindowOverflowError",
]

# The base classes of all errors of the kit.


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
        Exit code of a command that stops with this error.
    """

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class UsageError(JoinError):
    """The request, or the data it names, must change."""

    exit_code = 2


class FailureError(JoinError):
    """The request was well formed, but the run failed."""

    exit_code = 1


# Errors of bundles that cannot be used or built.


class ManifestError(UsageError):
    """A bundle cannot be used; its subclasses say why.

    Parameters
    ----------
    path : object
        Path of the bundle or of its manifest file.
    reason : str
        What is wrong with the bundle, and what to do.
    """

    def __init__(self, path: object, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(f"Bundle {self.path!r} {reason}.")


class MissingManifestError(ManifestError):
    """There is no bundle at this path, or a part of the bundle is missing."""


class ForeignManifestError(ManifestError):
    """The file is not a manifest of this kit, or has a format that this version does not read."""


class StaleManifestError(ManifestError):
    """The parts of the bundle do not belong together: one was changed after it was generated."""


class ForeignLibraryError(ManifestError):
    """The simulator library was compiled for another processor."""


class CacheError(FailureError):
    """The folder for bundles and simulator libraries cannot be written.

    Parameters
    ----------
    folder : object
        The folder.
    reason : str
        Why it cannot be written.
    """

    def __init__(self, folder: object, reason: str) -> None:
        self.folder = str(folder)
        self.reason = reason
        super().__init__(
            f"Nothing can be built: folder {self.folder!r} cannot be written ({reason}); set "
            f"SPLITJOIN_CACHE to a folder that can be."
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
        What the program is needed for.
    remedy : str
        How to get the program.
    """

    def __init__(self, tool: str, purpose: str, remedy: str) -> None:
        self.tool = tool
        self.purpose = purpose
        self.remedy = remedy
        super().__init__(f"{tool} is needed {purpose}, but was not found; {remedy}.")


# Errors of queries that ask for more than the given accelerator can do.


class AcceleratorLimitError(UsageError):
    """The given accelerator cannot serve a valid query; another device, or none, can.

    Parameters
    ----------
    reason, remedy : str
        What the accelerator cannot do, and what would help.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}.")


class CapacityError(AcceleratorLimitError):
    """A window is larger than the accelerator can hold, which is known before any tuple is sent.

    Parameters
    ----------
    needed, capacity : int
        Number of tuples of one side: in the window, and in the accelerator.
    side : object, optional
        Side of the window.
    cores : int
        Number of cores in the suggested command.
    engine : str
        Engine in the suggested command.
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
        Side of the window.
    capacity : int
        Number of tuples of one side that the accelerator holds.
    ordinal : int, optional
        Number, within its side, of the tuple that found no room; the first is 0.
    needed : int, optional
        Capacity that the whole input needs, if known.
    cores : int
        Number of cores in the suggested command.
    engine : str
        Engine in the suggested command.
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


class UnknownColumnError(UsageError):
    """A table has no column of the given name.

    Parameters
    ----------
    column : str
        The name asked for.
    columns : Sequence of str
        The columns that the table has.
    table : str
        Name of the table that the user knows.
    """

    def __init__(self, column: str, columns: Sequence[str], *, table: str = "the table") -> None:
        self.column = column
        self.columns = tuple(columns)
        self.table = table
        listing = ", ".join(repr(name) for name in self.columns[:_LISTED]) or "none"
        if len(self.columns) > _LISTED:
            listing += f" and {len(self.columns) - _LISTED} more"
        super().__init__(
            f"There is no column {column!r} in {table}{_near(column, self.columns)}; "
            f"its columns: {listing}."
        )


class UnsupportedTypeError(UsageError):
    """The type of a column cannot be used as the query requires.

    Parameters
    ----------
    column : str
        The column.
    type_name : object
        Type of the column.
    supported : str
        Types that can be used.
    """

    def __init__(self, column: str, type_name: object, supported: str) -> None:
        self.column = column
        self.type_name = str(type_name)
        self.supported = supported
        super().__init__(
            f"Column {column!r} has type {self.type_name}, which cannot be used here; "
            f"cast it to one of: {supported}."
        )


class UntypedColumnError(UnsupportedTypeError):
    """A column has no type, because no row has a value in it.

    Parameters
    ----------
    column : str
        The column.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.type_name = "null"
        self.supported = ""
        UsageError.__init__(
            self,
            f"Column {column!r} has no type, because no row has a value in it: a CSV or JSON file "
            f"tells the types of its columns by their values only; add a row that has a value "
            f"there, or give the column a type, by a cast or in a Parquet file.",
        )


class KeyRangeError(UsageError):
    """A value does not fit a field of the accelerator, or 64 bits.

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
        Row of the value, counted from 0 over the whole stream.
    of : str, optional
        What the range is one of; by default, of 64 bits if it is as large, else of a field.
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
        of: str | None = None,
    ) -> None:
        self.column = column
        self.value = value
        self.low = low
        self.high = high
        self.remedy = remedy
        self.row = row
        place = "" if row is None else f" in row {row} (the first is 0)"
        if of is None:
            # No accelerator is to blame for a range that no field exceeds.
            of = "64 bits" if high - low >= (1 << 64) - 2 else "the accelerator's field"
        super().__init__(
            f"Column {column!r} holds {value}{place}, outside the range {low} .. {high} of {of}; "
            f"{remedy}."
        )


class PredicateError(UsageError):
    """A predicate cannot be loaded, or names a field that the tuples do not have."""


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


class DeviceUriError(UsageError):
    """A device URI has no known scheme, or lacks what its scheme needs.

    Parameters
    ----------
    uri : str
        The URI as given.
    reason : str
        What is wrong with the URI.
    """

    def __init__(self, uri: str, reason: str) -> None:
        self.uri = uri
        self.reason = reason
        super().__init__(
            f"Device {uri!r} {reason}; a device is 'sim:BUNDLE', 'software:' or 'software:BUNDLE', "
            f"where BUNDLE is a folder that `{command('sim build --output BUNDLE')}` wrote (for "
            f"'software:', `{command('hdl generate')}` is enough), "
            f"'serial:PATH?baud=N&bundle=BUNDLE', "
            f"'tcp:HOST:PORT?bundle=BUNDLE' or 'udp:HOST:PORT?bundle=BUNDLE' for a board, or "
            f"'PACKAGE.MODULE:PLACE', where that module has a function open_device(PLACE)."
        )


class DeviceError(FailureError):
    """A device broke its contract or stopped working."""


class DeviceLockError(DeviceError):
    """The lock file that reserves a device for one process cannot be trusted."""


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

    def __init__(self, uri: str, waited: str, counters: Mapping[str, int]) -> None:
        self.uri = uri
        self.waited = waited
        self.counters = dict(counters)
        listing = ", ".join(f"{name} {value}" for name, value in self.counters.items())
        super().__init__(
            f"Device {uri!r} made no progress within {waited}; its counters: {listing or 'none'}."
        )


class CoreFailureError(DeviceError):
    """A core of the accelerator failed, and the answer lacks its pairs.

    Parameters
    ----------
    uri : str
        URI of the device.
    core : int
        Number of the core.
    reason : str
        Why the join cannot go on, and what can be done.
    """

    def __init__(self, uri: str, core: int, reason: str) -> None:
        self.uri = uri
        self.core = core
        self.reason = reason
        super().__init__(f"Core {core} of device {uri!r} failed. {reason}")


class IllegalWordError(DeviceError):
    """A device received an input word that is illegal for it, and dropped the word.

    This package sends no illegal words: the word was changed on its way, or another writer sent it.

    Parameters
    ----------
    uri : str
        URI of the device.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"Device {uri!r} got an input word that is neither a tuple nor an operation it knows, "
            f"and dropped it, so its answer may lack pairs; check the link to the device, and that "
            f"nobody else writes to it, then run the join again, which begins with CLEAR."
        )


class MemoryFaultError(DeviceError):
    """An external memory answered with an error, so tuples of the windows were lost.

    Parameters
    ----------
    uri : str
        URI of the device.
    errors : int
        Beats and bursts that were answered with an error since the join began.
    """

    def __init__(self, uri: str, errors: int) -> None:
        self.uri = uri
        self.errors = errors
        super().__init__(
            f"An external memory of device {uri!r} answered {errors} beats or bursts with an "
            f"error, so its windows lack tuples and its answer may lack pairs; check the address "
            f"ranges behind the ports m_axi_* and the memory itself, then run the join again."
        )


class DeviceBusyError(DeviceError):
    """No device became free before the deadline; each can be used by one process at a time.

    Parameters
    ----------
    devices : sequence of str
        The devices, any of which would have sufficed.
    waited : str
        How long the caller waited, with its unit.
    holders : Mapping of str to str
        The known holders of the devices.
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
            f"{held or 'no holder is recorded'}; {remedy}."
        )


# Errors of epochs: of their numbers, of their cores, and of the room that these cores have.


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

    def __init__(self, number: int, rule: str, remedy: str, place: int | None = None) -> None:
        self.number = number
        self.rule = rule
        self.remedy = remedy
        self.place = place
        where = "" if place is None else f" after {place} tuples"
        super().__init__(f"Epoch {number} is refused{where}: {rule}; {remedy}.")


class EpochOrderError(EpochError):
    """The number of an epoch is not above that of the epoch before it."""

    def __init__(self, number: int, last: int, place: int | None = None) -> None:
        self.last = last
        super().__init__(
            number,
            f"its number is not above {last}, that of the epoch before it",
            "number epochs upwards from 1, or leave the numbers to the driver",
            place,
        )


class EpochCoresError(EpochError):
    """An epoch has no core, a core that the accelerator does not have, or one core twice."""

    def __init__(
        self, number: int, cores: Sequence[int], most: int, place: int | None = None
    ) -> None:
        self.cores = tuple(cores)
        super().__init__(
            number,
            f"it needs at least one core, each of 0 to {most - 1} at most once, not {list(cores)}",
            "give it the numbers of the cores that are to be active",
            place,
        )


class EpochCapacityError(EpochError):
    """The active cores of an epoch cannot hold the window.

    Parameters
    ----------
    number : int
        Number of the epoch.
    window : int
        Tuples of one side in the window.
    cores : sequence of int
        The active cores.
    room : int
        Tuples that each core holds.
    needed : int
        Tuples that one of the cores would have to hold, which is more than an even share if the
        window has tuples of epochs before.
    place : int, optional
        See :class:`EpochError`.
    """

    def __init__(
        self,
        number: int,
        window: int,
        cores: Sequence[int],
        room: int,
        needed: int,
        place: int | None = None,
    ) -> None:
        self.window, self.room, self.needed = window, room, needed
        self.cores = tuple(cores)
        super().__init__(
            number,
            f"with a window of {window} tuples, one of its {len(cores)} cores would hold {needed} "
            f"tuples, and each has room for {room}",
            "keep more cores active, choose a smaller window, or build a bundle with a larger "
            "--sub-window",
            place,
        )


# Errors of links to boards.

#: What to look at when nobody answers, by the scheme of the URI.
_CHECKS = {
    "serial": "that it is connected, that the bitstream is loaded, that the baud rate is the "
    "bitstream's, and that no other program uses it",
    "tcp": "that the server of the board runs there, that the bitstream is loaded, that the URI "
    "has the baud rate of the line behind the server (baud=N), and that no other program uses it",
    "udp": "that the board has this address, that a network card of this machine is in the same "
    "network and no firewall between them, and that the bitstream is loaded",
}


class LinkError(DeviceError):
    """The link to a board cannot be used."""


class LinkSilentError(LinkError):
    """Nobody answered the greeting.

    Parameters
    ----------
    uri : str
        URI of the device.
    seconds : float
        How long the greeting was repeated.
    garbled : int
        Pieces of the byte stream that came and were no frame.
    reason : str
        Why there is no byte stream; empty if there is one.
    """

    def __init__(self, uri: str, seconds: float, garbled: int, reason: str = "") -> None:
        self.uri = uri
        self.seconds = seconds
        self.garbled = garbled
        self.reason = reason
        if reason:
            told = f"could not be opened within {seconds:g} s: {reason}"
        else:
            heard = f"{garbled} pieces came that were no frame" if garbled else "no byte came"
            told = f"did not answer the greeting within {seconds:g} s ({heard})"
        scheme = uri.partition(":")[0]
        super().__init__(f"Device {uri!r} {told}; check {_CHECKS.get(scheme, _CHECKS['serial'])}.")


class LinkMismatchError(LinkError):
    """The board is not the one that the bundle describes.

    Parameters
    ----------
    uri : str
        URI of the device.
    what : str
        What differs.
    board, bundle : str
        What the board has, and what the bundle or this kit has.
    older : bool
        Whether that is a matter of the kit which made the bitstream, so that no bundle helps.
    """

    def __init__(
        self, uri: str, what: str, board: str, bundle: str, *, older: bool = False
    ) -> None:
        self.uri = uri
        self.what = what
        self.board = board
        self.bundle = bundle
        self.older = older
        if older:
            told = (
                f"but this kit has {bundle}: another version of the kit made the bitstream; make "
                f"it again (`make bitstream BOARD=...`) and load it, or use that version."
            )
        else:
            told = (
                f"but the bundle has {bundle}; load the bundle's bitstream into the board, or name "
                f"the bundle of the bitstream that is there."
            )
        super().__init__(f"Device {uri!r} has the {what} {board}, {told}")


class LinkLostError(LinkError):
    """The link to a board was lost while the board was in use.

    Parameters
    ----------
    uri : str
        URI of the device.
    reason : str
        How it was lost.
    accepted, delivered : int
        Input words that the device accepted, and those that the board acknowledged.
    results : int
        Result words that have come.
    can_resume : bool
        Whether the board may still know the session.
    """

    def __init__(
        self,
        uri: str,
        reason: str,
        *,
        accepted: int,
        delivered: int,
        results: int,
        can_resume: bool,
    ) -> None:
        self.uri = uri
        self.reason = reason
        self.accepted = accepted
        self.delivered = delivered
        self.results = results
        self.can_resume = can_resume
        remedy = (
            "add reconnect=SECONDS to the URI, and a run continues where it stood"
            if can_resume
            else "nothing can be continued; open the device again and run the join again"
        )
        super().__init__(
            f"Link to device {uri!r} was lost: {reason}. Of {accepted} input words, the board has "
            f"acknowledged {delivered}; {results} result words have come; {remedy}."
        )


# Errors of windowed operators: their expressions, their descriptions, and what they compute.


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


# Errors of rows that are out of order, have no place in it, or are repeated.

#: Largest number of columns of a row that a message shows.
_SHOWN = 6


class DisorderError(UsageError):
    """Time goes backwards in an input that was declared sorted.

    Parameters
    ----------
    where : object
        Side or column.
    position : int
        Row, counted from 0, whose value is less than the value before it.
    previous, value : object
        The two values.
    partition : int, optional
        Partition of the input in which ``position`` counts, if there are several.
    source : str, optional
        What that partition is called, such as ``"file 'a.parquet'"``, if it has a name.
    """

    def __init__(
        self,
        where: object,
        position: int,
        previous: object,
        value: object,
        *,
        partition: int | None = None,
        source: str | None = None,
    ) -> None:
        self.where = where
        self.position = position
        self.previous = previous
        self.value = value
        self.partition = partition
        of_partition = "" if partition is None else f" of the input's partition {partition}"
        if source is not None:
            of_partition = f" of {source}"
        super().__init__(
            f"Time goes backwards in {_place(where)}: row {position}{of_partition} (the first is "
            f"0) has {value} after {previous}; sort the input by its order column."
        )


class FalseOrderError(UsageError):
    """Rows of a source are not sorted by the columns that it was declared to be sorted by.

    Parameters
    ----------
    source : str
        The source.
    by : sequence of str
        The columns.
    position : int
        Row, counted from 0, that is less than the row before it.
    previous, row : mapping
        Values of the columns in both rows.
    part : int, optional
        Part of the source in which ``position`` counts, if there are several.
    """

    def __init__(
        self,
        source: str,
        by: Sequence[str],
        position: int,
        previous: Mapping[str, object],
        row: Mapping[str, object],
        *,
        part: int | None = None,
    ) -> None:
        self.source = source
        self.by = tuple(by)
        self.position = position
        self.previous = dict(previous)
        self.row = dict(row)
        self.part = part
        place = "" if part is None else f" of part {part}"
        super().__init__(
            f"The rows of {source} are declared to be sorted by {', '.join(by)}, but row {position}"
            f"{place} (the first is 0) has {_shown(row)} after {_shown(previous)}; sort them "
            f"first, or do not declare it."
        )


class FalseDistinctError(UsageError):
    """Rows of a source agree in all columns that it was declared to be distinct by.

    Parameters
    ----------
    source : str
        The source.
    by : sequence of str
        The columns.
    position : int
        Row, counted from 0, whose values an earlier row has too.
    row : mapping
        Values of the columns.
    part : int, optional
        Part of the source in which ``position`` counts, if there are several.
    """

    def __init__(
        self,
        source: str,
        by: Sequence[str],
        position: int,
        row: Mapping[str, object],
        *,
        part: int | None = None,
    ) -> None:
        self.source = source
        self.by = tuple(by)
        self.position = position
        self.row = dict(row)
        self.part = part
        place = "" if part is None else f" of part {part}"
        super().__init__(
            f"The rows of {source} are declared to be distinct by {', '.join(by)}, but row "
            f"{position}{place} (the first is 0) has {_shown(row)} as another row has; use "
            f"distinct({', '.join(map(repr, by))}), or do not declare it."
        )


class NullOrderError(UsageError):
    """The column that gives the order of arrival holds a null.

    Parameters
    ----------
    column : str
        The column.
    position : int, optional
        Row of the first null, counted from 0, if the user can look up row numbers.
    row : Mapping of str to object
        The row itself, as far as its columns are available.
    """

    def __init__(
        self, column: str, position: int | None = None, row: Mapping[str, object] | None = None
    ) -> None:
        self.column = column
        self.position = position
        places = [] if position is None else [f"row {position} (the first is 0)"]
        if row:
            places.append(f"the row with {_shown(row)}")
        super().__init__(
            f"Order column {column!r} is null in {', '.join(places)}; a row without a place in "
            f"time cannot be joined: drop it, or fill the column."
        )


class DuplicateKeyError(UsageError):
    """A row is repeated where all rows must differ.

    Parameters
    ----------
    key : object
        The compared values.
    row : int
        Number of the second of the equal rows, counted from 0.
    """

    def __init__(self, key: object, row: int) -> None:
        self.key = key
        self.row = row
        super().__init__(
            f"Row {row} (the first is 0) repeats {key!r}; remove the duplicates, or leave them out "
            f"with fail_on_duplicate=False."
        )


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
