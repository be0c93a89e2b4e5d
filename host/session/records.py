# SPDX-License-Identifier: Apache-2.0
"""What a join notes of itself: changes of precision and cores, failures, copies, latencies."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
import json
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from host.arrays import Int64s, UInt64s
from host.devices.waiting import Work
from host.errors import EpochError, UsageError
from host.query.cores import Epoch, Observation
from host.reference.arrivals import Side
from host.runtime import ColumnLog, Columns

__all__ = [
    "ChangeLog",
    "CoreChange",
    "CoreDecision",
    "CoreFailure",
    "ElasticRecord",
    "FailureRecord",
    "Latency",
    "LostTuples",
    "MOST_CHANGES",
    "Measured",
    "PeriodChange",
    "PrecisionRecord",
    "REPLAY",
    "StagingCounters",
    "Trace",
    "cause_of",
    "corners",
    "note_into",
    "read_epochs",
]

# Changes that a join makes while it runs, as a record of its execution keeps them.

Change = TypeVar("Change")

#: Number of changes that a log keeps; of more, it keeps the last ones.
MOST_CHANGES = 4_096


@dataclass(kw_only=True)
class ChangeLog(Generic[Change]):
    """The last changes, and the number of all of them.

    Parameters
    ----------
    changed : int
        Number of changes.
    changes : list
        The changes, or the last ones of very many.
    """

    changed: int = 0
    changes: list[Change] = field(default_factory=list[Change])

    def change(self, change: Change) -> None:
        """Note a change."""
        self.changed += 1
        self.changes.append(change)
        if len(self.changes) > MOST_CHANGES:
            del self.changes[0]


def corners(changes: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Return the corners of a line that keeps each value until the next one begins.

    Parameters
    ----------
    changes : sequence of (float, float)
        When each value begins, in order, and the value; at least one.
    end : float
        Where the line ends, if no change is later.
    """
    ends = [at for at, _ in changes[1:]] + [max(end, changes[-1][0])]
    return [
        (at, value)
        for (begin, value), after in zip(changes, ends, strict=True)
        for at in (begin, after)
    ]


# What an adaptive precision decided while a join ran.


@dataclass(frozen=True)
class PeriodChange:
    """A change of the period.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    tuples : int
        Tuples of the join that came before the change.
    period : int
        The new period.
    """

    cycle: int
    tuples: int
    period: int


@dataclass
class PrecisionRecord(ChangeLog[PeriodChange]):
    """The decisions of one execution, with the changes of the period.

    Parameters
    ----------
    goal : str
        What was to be held.
    bound : int
        Longest period that could be chosen.
    first : int
        First period.
    unit : str
        What a period counts.
    measurements, held : int
        Number of measurements, and how many of them met the goal.
    """

    goal: str
    bound: int
    first: int
    unit: str = "probes"
    measurements: int = 0
    held: int = 0

    @property
    def period(self) -> int:
        """The last period."""
        return self.changes[-1].period if self.changes else self.first

    def judge(self, *, held: bool) -> None:
        """Note the outcome of a measurement."""
        self.measurements += 1
        self.held += held

    def __str__(self) -> str:
        if not self.measurements:
            return f"a star every {self.first} {self.unit}: no measurement was completed"
        return (
            f"{self.goal} held in {self.held:,} of {self.measurements:,} measurements; period "
            f"{self.first} at first, {self.period} at last, {self.changed:,} changes, "
            f"{self.bound} at most"
        )


# What an elastic join decided while it ran.


@dataclass(frozen=True)
class CoreDecision:
    """An observation, and the number of cores that it led to.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    seen : Observation
        What was observed.
    active : int
        Number of cores from then on.
    """

    cycle: int
    seen: Observation
    active: int


@dataclass(frozen=True)
class CoreChange:
    """A change of the cores that store.

    Parameters
    ----------
    cycle : int
        Cycles that the device had run for the join.
    tuples : int
        Tuples of the join that came before the change.
    cores : tuple of int
        The cores that store from then on, in the order of their turns.
    failed : tuple of int
        The cores that had failed just before; without any, the change is one of the controller.
    """

    cycle: int
    tuples: int
    cores: tuple[int, ...]
    failed: tuple[int, ...] = ()


@dataclass
class ElasticRecord(ChangeLog[CoreChange]):
    """The decisions of one execution, with the changes of the cores.

    Parameters
    ----------
    controller : str
        What decided.
    cores : int
        Cores that there were, all of which were in force at first.
    observations : int
        Number of observations.
    forced : int
        Number of changes because tuples that had arrived would not have fitted the cores in force.
    cycles : int
        Cycles in which the device worked.
    core_cycles : int
        The same, summed over the cores that took turns or held tuples of a window in each of them.
        The clock of any other core could have been off.
    rates : deque of (int, float)
        Cycle of each observation, and tuples that arrived per 1,000 cycles; the last ones of very
        many.
    """

    controller: str
    cores: int
    observations: int = 0
    forced: int = 0
    cycles: int = 0
    core_cycles: int = 0
    rates: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))

    def observe(self, seen: Observation) -> None:
        """Note an observation that ends now."""
        self.observations += 1
        self.rates.append((self.cycles, 1_000 * seen.arrived / seen.cycles))

    @property
    def active(self) -> int:
        """The last number of cores in force."""
        return len(self.changes[-1].cores) if self.changes else self.cores

    @property
    def saved(self) -> float:
        """Share of the cycles of all cores in which a core was not needed."""
        return 1 - self.core_cycles / (self.cores * self.cycles) if self.cycles else 0.0

    def __str__(self) -> str:
        if not self.observations:
            return f"{self.controller}: {self.cores} cores, no observation was completed"
        forced = f", {self.forced:,} of them for room" if self.forced else ""
        return (
            f"{self.controller}: {self.cores} cores at first, {self.active} at last, "
            f"{self.changed:,} changes{forced}; {self.saved:.0%} of the core cycles saved"
        )


# What a join lost, or did again, because cores of its accelerator failed.


@dataclass(frozen=True)
class LostTuples:
    """Evenly spaced tuples of one side that some probes of the other side could not meet any more.

    Tuples are numbered within their side, in the order of arrival, without rows that were not sent.

    Parameters
    ----------
    side : Side
        Side of the tuples.
    first, last : int
        Numbers of the first and of the last of them. Between them are tuples of other cores, too.
    count : int
        How many there are.
    probes_from : int
        Number of the first probe, a tuple of the other side, that could not meet them.
    """

    side: Side
    first: int
    last: int
    count: int
    probes_from: int


@dataclass(frozen=True)
class CoreFailure:
    """The failure of one core.

    Parameters
    ----------
    core : int
        Number of the core.
    cycle : int
        Cycles that the device had run for the join when the failure was noticed.
    lost : tuple of LostTuples
        What is missing; empty if the window was sent again.
    replayed : int
        Number of tuples that were sent again.
    parity : tuple of Side
        Sides of whose tuples the core read a flipped bit in its memory, if that is why it failed;
        empty if it stopped.
    """

    core: int
    cycle: int
    lost: tuple[LostTuples, ...] = ()
    replayed: int = 0
    parity: tuple[Side, ...] = ()

    def __str__(self) -> str:
        if not self.parity:
            return str(self.core)
        return f"{self.core} ({cause_of(self.parity)})"


def cause_of(parity: tuple[Side, ...]) -> str:
    """Return why a core failed that read flipped bits in its tuples of these sides."""
    return f"a flipped bit in its tuples of {' and '.join(side.name for side in parity)}"


@dataclass
class FailureRecord:
    """The failures of one execution.

    Parameters
    ----------
    failures : list of CoreFailure
        In the order in which they were noticed.
    """

    failures: list[CoreFailure] = field(default_factory=list[CoreFailure])

    @property
    def lost_tuples(self) -> int:
        """Number of tuples that some probe could not meet."""
        return sum(lost.count for failure in self.failures for lost in failure.lost)

    @property
    def replayed(self) -> int:
        """Number of tuples that were sent again."""
        return sum(failure.replayed for failure in self.failures)

    def __str__(self) -> str:
        if not self.failures:
            return "no core failed"
        cores = ", ".join(map(str, self.failures))
        text = f"failed cores: {cores}"
        if self.replayed:
            text += f"; {self.replayed:,} tuples sent again, nothing is missing"
        for failure in self.failures:
            for lost in failure.lost:
                text += (
                    f"; {lost.count:,} tuples of {lost.side.name} stored by core {failure.core}, "
                    f"numbers {lost.first:,} to {lost.last:,}, are missing for probes from "
                    f"{lost.probes_from:,} on"
                )
        return text


# Counters of the staging of Arrow batches into a device's input words.


@dataclass
class StagingCounters:
    """Counts of batches, rows and bytes; each execution of an accelerator has its own.

    Attributes
    ----------
    batches, rows : int
        Arrow batches taken from the inputs, and their rows.
    tuples : int
        Rows that were encoded as tuples; rows that cannot match may be left out.
    halo_tuples : int
        Number of these tuples that come from halo rows, which are the first ones.
    staged_bytes : int
        Bytes written into input words, each of them once.
    copied_batches, copied_bytes : int
        Batches of which a column was copied on the way, and the bytes copied. A column is copied
        if it does not consist of integers (text, booleans), holds nulls, or shares its batch with
        the other side. Small batches are copied when they are joined.
    moved_words : int
        Words that were moved to the front of a new staging area because the old one was full.
    """

    batches: int = 0
    rows: int = 0
    tuples: int = 0
    halo_tuples: int = 0
    staged_bytes: int = 0
    copied_batches: int = 0
    copied_bytes: int = 0
    moved_words: int = 0


# Compute latencies from the cycles in which tuples and results were transferred.


class Trace:
    """Time stamps of one execution, as they are collected.

    Parameters
    ----------
    foreign : int
        Number of tuples of another execution that come before the first one.
    """

    def __init__(self, foreign: int) -> None:
        self._foreign = foreign
        self._accepts = ColumnLog()
        self._arrivals: list[Int64s] = []
        self._cycles: list[Int64s] = []

    def accept(self, cycles: UInt64s) -> None:
        """Record the cycles in which the next tuples were accepted."""
        foreign = min(self._foreign, len(cycles))
        self._foreign -= foreign
        self._accepts.append(Columns({"cycle": cycles[foreign:].astype(np.int64)}))

    def pairs(self, pairs: Columns) -> Columns:
        """Add the column ``latency``: cycles from the later tuple's acceptance to the emission."""
        emitted = pairs["emitted"].astype(np.int64)
        latency = emitted - self._accepts.read("cycle", pairs["probe"])
        return Columns({**pairs.arrays, "emitted": emitted, "latency": latency})

    def stars(self, arrival: Int64s, cycles: Int64s) -> None:
        """Record completed probes by their place, and when their stars were emitted."""
        if len(arrival):
            self._arrivals.append(arrival)
            self._cycles.append(cycles - self._accepts.read("cycle", arrival))

    def forget(self, arrivals: int) -> None:
        """Forget the first ``arrivals`` tuples, whose results are complete."""
        self._accepts.forget(arrivals)

    @property
    def processing(self) -> Int64s:
        """Processing latencies of all completed probes in the order of arrival, in cycles."""
        if not self._arrivals:
            return np.zeros(0, np.int64)
        order = np.argsort(np.concatenate(self._arrivals), kind="stable")
        return np.concatenate(self._cycles)[order]


# What one execution of a join has measured, filled in by those who see it.


@dataclass(frozen=True)
class Latency:
    """Latencies from a trace, in clock cycles of the device.

    Parameters
    ----------
    processing : array of int64
        For each tuple that is no halo row, in the order of arrival: cycles from its acceptance to
        the star behind its results.
    visiting : array of int64
        For each pair: cycles from the acceptance of the later tuple to the emission of the pair.
    emitted : array of int64
        For each pair: cycle of its emission, counted since the device was opened.
    """

    processing: Int64s
    visiting: Int64s
    emitted: Int64s


@dataclass
class Measured(Work):
    """Measurements of one execution while it runs.

    Parameters
    ----------
    staged : StagingCounters
        The staging of batches into input words.
    precision : PrecisionRecord or None
        Decisions of an adaptive ordering; None for any other ordering.
    epochs : list of Epoch
        The epochs that took effect; ``after`` is the place of each.
    superseded : list of Epoch
        Epochs that a later one replaced before they took effect.
    refused : EpochError or None
        Why the execution ended before an epoch. What comes before it has been answered.
    elastic : ElasticRecord or None
        Decisions of an elastic join; None for any other join.
    failures : FailureRecord or None
        Cores that failed; None if a failure ends the join.
    hash_note : str
        Note that an index read too many entries; empty if it did not.
    longest_wait : int or None
        Most cycles from a tuple's arrival to its answer; None without a pace. Arrivals and answers
        are seen between exchanges, so it is up to two of them too long.
    trace : Trace or None
        Time stamps, if they are asked for.
    visits : list of Columns
        Row numbers of the results, if they are recorded.
    """

    staged: StagingCounters = field(default_factory=StagingCounters)
    precision: PrecisionRecord | None = None
    epochs: list[Epoch] = field(default_factory=list[Epoch])
    superseded: list[Epoch] = field(default_factory=list[Epoch])
    refused: EpochError | None = None
    elastic: ElasticRecord | None = None
    failures: FailureRecord | None = None
    hash_note: str = ""
    longest_wait: int | None = None
    trace: Trace | None = None
    visits: list[Columns] = field(default_factory=list[Columns])

    @property
    def pairs(self) -> tuple[Int64s, Int64s]:
        """Row numbers of every result in the left and in the right input, if they were recorded.

        For a one-sided row, the other row number is -1.
        """
        return self._visited("left"), self._visited("right")

    def take_pairs(self) -> tuple[Int64s, Int64s]:
        """Return the :attr:`pairs` recorded since the last call, and forget them."""
        taken = self.pairs
        self.visits.clear()
        return taken

    @property
    def latency(self) -> Latency | None:
        """Latencies; None without a trace."""
        if self.trace is None:
            return None
        processing = self.trace.processing[self.staged.halo_tuples :]
        emitted = self._visited("emitted")
        pairs = emitted >= 0  # one-sided rows are not emitted by the device
        return Latency(processing, self._visited("latency")[pairs], emitted[pairs])

    def _visited(self, name: str) -> Int64s:
        parts = [pairs[name] for pairs in self.visits if name in pairs.arrays]
        return np.concatenate([np.zeros(0, np.int64), *parts])


# A file of the decisions of an elastic join: a JSON document per line.

#: Beginning of the name of a controller that takes its epochs from a file.
REPLAY = "replay:"


def note_into(path: str | Path) -> Callable[[Any], None]:
    """Empty a file, and return what appends each decision and each change to it, at once.

    A decision has its ``cycle``, the observation ``seen`` and the number ``active`` of cores; a
    change has its ``cycle``, its place ``tuples`` and the ``cores``.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    path = Path(path)
    try:
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Decisions cannot be written to {str(path)!r}: {error}.") from error

    def note(entry: Any) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry), default=float) + "\n")

    return note


def read_epochs(path: str | Path) -> list[tuple[int, tuple[int, ...]]]:
    """Return the places and cores of the changes in a file of decisions.

    Raises
    ------
    UsageError
        If the file cannot be read, or a line is no decision and no change.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The decisions in {str(path)!r} cannot be read: {error}.") from error
    epochs = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            if "cores" in entry:
                epochs.append((int(entry["tuples"]), tuple(int(core) for core in entry["cores"])))
            elif "seen" not in entry:
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f"Line {number} of {str(path)!r} is no decision of an elastic join; give a file "
                f"that --elastic-log has written."
            ) from None
    return epochs
