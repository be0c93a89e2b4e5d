# SPDX-License-Identifier: Apache-2.0
"""Turn results of an accelerator into pairs of row numbers: late materialization."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from host.arrays import Array, Bools, Int64s, UInt64s
from host.errors import DeviceError
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.protocol.punctuation import Closings, Grouper
from host.protocol.result_words import ResultWords
from host.protocol.segments import StorageSegments
from host.protocol.storage import StorageRule
from host.query.ordering import Ordering
from host.reference.arrivals import Side
from host.reference.window import CountWindow, Window
from host.runtime import ColumnLog, Columns
from host.session.intake import Arrived

__all__ = [
    "ExpectedStars",
    "Faults",
    "OrdinalDecoder",
    "ResultDecoder",
    "ToldFailures",
    "result_decoder",
]


# Where the stars of an accelerator's answer will stand, told from the tuples that it is sent.


class ExpectedStars:
    """Keeps, for each side, before which probes the stars stand that have not been seen.

    The precision may change while tuples that are staged wait to be sent. If it does, the groups of
    a tuple are not known before its place relative to the change is. Then tuples are only noted
    when they are staged, and their groups are closed when :meth:`send` says that they have their
    place.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    ordering : Ordering
        Precision that the accelerator is set to.
    changes : bool
        Whether the precision may change.

    Attributes
    ----------
    ends : mapping of Side to array of int64
        Probes before the last star that was seen, then before each star that is still expected.
    """

    def __init__(self, manifest: Manifest, ordering: Ordering, *, changes: bool = False) -> None:
        self._manifest = manifest
        self._live = manifest.storage.cores  # number of cores that take turns to store
        self._grouper = self._new_grouper(ordering)
        self.ends = {side: np.zeros(1, np.int64) for side in Side}
        self._unstarred = dict.fromkeys(Side, 0)  # probes in closed groups without a star yet
        self._changes = changes
        self._waiting: deque[npt.NDArray[np.uint8]] = deque()  # sides of tuples without a place
        self._segments: deque[tuple[int, int]] = deque()  # tuples before, live cores
        self._sent, self._staged = 0, 0
        self._ended = False

    def stage(self, places: Mapping[Side, Int64s]) -> None:
        """Take the next tuples, given by the places of each side's among them."""
        if not self._changes:
            self._close(self._grouper.feed_places(places))
            return
        sides = np.empty(sum(map(len, places.values())), np.uint8)
        for side, mine in places.items():
            sides[mine] = side
        self._waiting.append(sides)
        self._staged += len(sides)

    def send(self, count: int) -> None:
        """Close the groups of the first ``count`` tuples; of those that had been sent, again not.

        No change of the precision comes before any of them from now on.
        """
        self._begin_segments()
        while self._sent < count:
            sides = self._waiting.popleft()
            now = (min(count, self._segments[0][0]) if self._segments else count) - self._sent
            if now < len(sides):
                self._waiting.appendleft(sides[now:])
                sides = sides[:now]
            self._close(self._grouper.feed(sides))
            self._sent += len(sides)
            self._begin_segments()
        if self._ended and self._sent == self._staged:
            self._close(self._grouper.finish())

    def change(self, ordering: Ordering) -> None:
        """Announce that the precision changes behind all tuples that were sent."""
        self._close(self._grouper.finish())
        self._grouper = self._new_grouper(ordering)

    def begin_segment(self, live: int) -> None:
        """Announce that ``live`` cores take turns to store from the next tuple on.

        SEGMENT ends the open groups. A change of the precision at the same place ends the same
        groups, so it does not matter which of the two words comes first.
        """
        self._segments.append((self._staged, live))
        self._begin_segments()

    def _begin_segments(self) -> None:
        """Begin the segments before which all tuples have their place."""
        while self._segments and self._segments[0][0] == self._sent:
            _, self._live = self._segments.popleft()
            self._close(self._grouper.finish())
            self._grouper.limit = self._limit

    def flush(self) -> None:
        """Announce that FLUSH comes behind all tuples that were staged."""
        self._ended = True
        self.send(self._sent)

    def see(self, side: Side, stars: int) -> Int64s:
        """Step over so many stars; return the ends from the one before them to the last one."""
        ends = self.ends[side]
        self.ends[side] = ends[stars:]
        return ends[: stars + 1]

    def _close(self, closed: Closings) -> None:
        for side in Side:
            of_side = closed.side == side
            total = np.cumsum(closed.probes[of_side]) + self._unstarred[side]
            starred = total[closed.star[of_side]]
            queue = self.ends[side]
            self.ends[side] = np.concatenate([queue, starred + queue[-1]])
            if len(total):
                self._unstarred[side] = int(total[-1] - (starred[-1] if len(starred) else 0))

    def _new_grouper(self, ordering: Ordering) -> Grouper:
        return Grouper(
            ordering,
            probes=self._manifest.probes,
            limit=self._limit,
            probe_bits=self._manifest.probe_bits,
        )

    @property
    def _limit(self) -> int:
        """Tuples of the other side that a group may wait for: the slack of the live cores."""
        return self._live * self._manifest.storage.slack


# Results of an accelerator as pairs of row numbers.


class Again(NamedTuple):
    """Tuples to send again.

    Attributes
    ----------
    words : array of uint64
        Their input words.
    numbers : dict of Side to array of int64
        For each side, the numbers of its tuples within their side.
    places : dict of Side to array of int64
        For each side, the places of its tuples among all of these tuples.
    """

    words: UInt64s
    numbers: dict[Side, Int64s]
    places: dict[Side, Int64s]


@dataclass(frozen=True)
class Faults:
    """Errors that the accelerator has reported.

    Parameters
    ----------
    overflow : tuple of Side
        Sides whose window outgrew the cores.
    disorder : bool
        Whether timestamps decreased.
    illegal : bool
        Whether the accelerator received an illegal word.
    """

    overflow: tuple[Side, ...] = ()
    disorder: bool = False
    illegal: bool = False

    def __bool__(self) -> bool:
        return self.disorder or self.illegal or bool(self.overflow)


@dataclass
class ToldFailures:
    """Failures of cores that stars and marks have told.

    Parameters
    ----------
    cores : dict of int to tuple of Side
        By failed core: the sides of whose tuples it read a flipped bit; none if it stopped.
    begins : dict of Side to tuple of int
        By side: the number of the first probe whose group lacks something, and its place among all
        arrivals.
    """

    cores: dict[int, tuple[Side, ...]] = field(default_factory=dict[int, tuple[Side, ...]])
    begins: dict[Side, tuple[int, int]] = field(default_factory=dict[Side, tuple[int, int]])


#: The stars of no probes, as :meth:`ResultDecoder.decode` returns them.
_NO_STARS = Columns({name: np.zeros(0, np.int64) for name in ("arrival", "cycle")})


class ResultDecoder:
    """Turns results of a device into pairs of rows, from a record of what was sent.

    Every tuple must be announced by :meth:`stage` before its results are decoded. A pair has the
    columns ``left`` and ``right`` (row numbers of the sides) and, if detailed, ``probe`` (place of
    the later tuple among all arrivals) and ``stored`` (number of the earlier tuple within its
    side). If origins are wanted, ``origin`` is twice the number of the core that stored the earlier
    tuple, plus the side of the later one.

    After a CLEAR amid a join, :meth:`restarted` returns the decoder that follows. The accelerator
    numbers tuples anew then, and so does that decoder. It gives places among all arrivals since the
    beginning, and drops the pairs of probes that were answered before.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    ordering : Ordering
        Precision that the accelerator is set to.
    window : CountWindow or TimeWindow
        Window of either side.
    detailed : bool
        Whether all columns are wanted.
    changes : bool
        Whether the precision may change; see :class:`ExpectedStars`.
    origins : bool
        Whether the column ``origin`` is wanted.

    Attributes
    ----------
    stars : ExpectedStars
        The stars that are still to come.
    segments : dict of Side to StorageSegments
        Where each side's tuples are stored.
    reach : int
        Largest number of tuples that a probe can look back.
    frozen : bool
        Whether tuples and segments are kept although no later result can refer to them.
    """

    def __init__(
        self,
        manifest: Manifest,
        ordering: Ordering,
        window: Window,
        *,
        detailed: bool = True,
        changes: bool = False,
        origins: bool = False,
    ) -> None:
        self._settings = manifest, ordering, window
        self._detailed = detailed
        self._origins = origins
        # After a restart: tuples of each side that were left out, and probes answered before.
        self._left_out = dict.fromkeys(Side, 0)
        self._answered = dict.fromkeys(Side, 0)
        self._told = ToldFailures()
        self.frozen = False
        self._codec = WordCodec(manifest)
        rule = StorageRule.of(manifest)
        self.segments = {side: StorageSegments(rule) for side in Side}
        # Largest number of tuples that a probe can look back.
        self.reach = rule.slots * rule.cores
        if isinstance(window, CountWindow):
            self.reach = min(self.reach, int(window.size))
        self.logs = {side: ColumnLog() for side in Side}
        self.arrivals = 0
        self.stars = ExpectedStars(manifest, ordering, changes=changes)
        self.marks = 0
        self.faults = Faults()

    def stage(self, arrived: Arrived) -> None:
        """Announce tuples in the order of arrival."""
        counts = {side: log.count for side, log in self.logs.items()}
        places = dict.fromkeys(Side, np.zeros(0, np.int64))
        for side, tuples in arrived.sides.items():
            begin, end, at = tuples.begin, tuples.end, tuples.places
            # A tuple's place minus the number of preceding tuples of its own side is the number of
            # the others.
            base = counts[side.other]
            columns: dict[str, Array] = {"before": at - np.arange(-base, len(at) - base)}
            log = self.logs[side]
            # Row numbers equal tuple numbers until a row has been left out.
            if (
                tuples.batch.rows is not None
                or tuples.batch.first + begin != log.count
                or log.has("row")
            ):
                columns["row"] = tuples.batch.row_numbers(begin, end)
            valid = tuples.batch.valid
            if valid is not None or log.has("valid"):
                flags = np.ones(len(at), np.bool_) if valid is None else valid[begin:end]
                columns["valid"] = flags
            log.append(Columns(columns))
            places[side] = at
        self.arrivals += arrived.count
        self._announce(places)

    def _announce(self, places: dict[Side, Int64s]) -> None:
        """Note which groups the tuples at these places close."""
        self.stars.stage(places)

    def flush(self) -> None:
        """Announce that FLUSH was sent."""
        self.stars.flush()

    def begin_segment(self, live: Sequence[int]) -> None:
        """Announce the :func:`host.protocol.configuration.segment_words` of these cores."""
        for side, segments in self.segments.items():
            segments.begin(self.logs[side].count, live)
        self.stars.begin_segment(len(live))

    def decode(
        self, results: UInt64s, stamps: UInt64s | None = None
    ) -> tuple[list[Columns], Columns]:
        """Decode the next results in order.

        Parameters
        ----------
        results : array of uint64
            Results, as from :meth:`host.protocol.codecs.WordCodec.split_words`.
        stamps : array of uint64, optional
            The cycle in which each result was emitted.

        Returns
        -------
        pairs : list of Columns
            Pairs of each side's probes; with stamps, they also have a column ``emitted``.
        stars : Columns
            Probes that are now complete: their place as ``arrival``, and the cycle of their star as
            ``cycle``; empty without stamps.
        """
        kinds = unpack_field(results, self._codec.result["kind"])
        rare = np.flatnonzero(kinds != self._codec.pair)
        punctuation = self._codec.unpack_results(results[rare])
        self.marks += int((punctuation.kind == self._codec.mark).sum())
        self._note_faults(punctuation)
        if self.faults:  # after a fault, pairs are unreliable and may make no sense
            results, kinds, rare, stamps = results[:0], kinds[:0], rare[:0], None
            punctuation = self._codec.unpack_results(results)
        is_pair = kinds == self._codec.pair
        sides = unpack_field(results, self._codec.result["side"])
        parts, latencies = [], []
        for side in Side:
            at = np.flatnonzero(is_pair & (sides == side))
            is_star = (punctuation.kind == self._codec.star) & (punctuation.side == side)
            is_star &= ~punctuation.inner  # the star of a round leaves its probe open
            stars = rare[is_star]
            self._note_failed(side, punctuation.failed[is_star])
            if len(stars) >= len(self.stars.ends[side]):
                raise DeviceError(
                    f"The device sent more stars of side {side.name} than the tuples sent call "
                    f"for; its bundle and its hardware do not belong together."
                )
            if len(at):
                parts.append(self._pairs(results, side, at, stars, stamps))
            latencies.append(self._advance(side, stars, stamps))
        self._note_cores(punctuation)
        if not (self.frozen or self._told.cores):
            self._forget()
        return parts, Columns.concatenate(latencies)

    def take_failures(self) -> ToldFailures:
        """Return what has been told of failed cores since the last call."""
        told, self._told = self._told, ToldFailures()
        return told

    def _note_failed(self, side: Side, failed: Bools) -> None:
        """Note the first probe whose star tells that something is missing."""
        if not failed.any() or side in self._told.begins:
            return
        begin = int(self.stars.ends[side][int(np.argmax(failed))])
        self._told.begins[side] = (begin, self.place(side, begin))

    def _note_cores(self, punctuation: ResultWords) -> None:
        """Note the cores that have failed, and why."""
        at = np.flatnonzero(punctuation.failed)
        causes = zip(punctuation.failed_core[at], punctuation.failed_parity[at], strict=True)
        for core, parity in causes:
            sides = tuple(side for side in Side if int(parity) >> side & 1)
            self._told.cores.setdefault(int(core), sides)

    def _pairs(
        self, results: UInt64s, side: Side, at: Int64s, stars: Int64s, stamps: UInt64s | None
    ) -> Columns:
        """Return the pairs found by probes of ``side``, which stand at the places ``at``."""
        own, layout = results[at], self._codec.result
        # Number of pairs before the first star, between it and the second one, and so on.
        counts = np.diff(np.searchsorted(at, stars), prepend=0, append=len(at))
        probe = np.repeat(self.stars.ends[side][: len(counts)], counts)
        probe += unpack_field(own, layout["probe"])
        mine, theirs = self.logs[side], self.logs[side.other]
        if int(probe.max()) >= mine.count:
            raise DeviceError(
                f"The device answered to tuple {int(probe.max())} of side {side.name}, but only "
                f"{mine.count} were sent."
            )
        before = mine.read("before", probe)
        core = self._codec.core_number(unpack_field(own, layout["core"]))
        stored = self.segments[side.other].ordinals(
            before,
            core,
            unpack_field(own, layout["row"]),
            unpack_field(own, layout["lane"]),
        )
        rows = {side: _rows_of(mine, probe), side.other: _rows_of(theirs, stored)}
        columns: dict[str, Array] = {"left": rows[Side.R], "right": rows[Side.S]}
        if self._detailed:
            columns |= {"probe": before + probe, "stored": stored}
        if self._origins:
            columns["origin"] = 2 * core + side
        if stamps is not None:
            columns["emitted"] = stamps[at]
        pairs = self._valid_pairs(Columns(columns), {side: probe, side.other: stored})
        if not (self._shift or self._answered[side]):
            return pairs
        arrays = {**pairs.arrays, "probe": pairs["probe"] + self._shift}
        first = self.place(side, self._answered[side])
        return Columns(arrays).take(np.flatnonzero(arrays["probe"] >= first))

    def _valid_pairs(self, pairs: Columns, numbers: dict[Side, Int64s]) -> Columns:
        """Leave out pairs of tuples that stand for rows which match nothing."""
        flags = [
            log.read("valid", numbers[side]) for side, log in self.logs.items() if log.has("valid")
        ]
        valid = np.logical_and.reduce(flags) if flags else np.True_
        return pairs if valid.all() else pairs.take(np.flatnonzero(valid))

    def _advance(self, side: Side, stars: Int64s, stamps: UInt64s | None) -> Columns:
        """Step over the stars that were seen; return their latencies."""
        seen = self.stars.see(side, len(stars))
        if stamps is None or not len(stars):
            return _NO_STARS
        probes = np.arange(seen[0], seen[-1])
        cycles = np.repeat(stamps[stars].astype(np.int64), np.diff(seen))
        arrival = self.logs[side].read("before", probes) + probes
        return Columns({"arrival": arrival, "cycle": cycles})

    @property
    def complete(self) -> int:
        """Number of first arrivals whose results have all been decoded."""
        places = [self.arrivals]
        for side, log in self.logs.items():
            first = self.first_open(side)
            if first < log.count:
                places.append(self.place(side, first))
        return min(places)

    def first_open(self, side: Side) -> int:
        """Return the number of the first probe of ``side`` that is not completely answered."""
        return max(int(self.stars.ends[side][0]), self._answered[side])

    def place(self, side: Side, number: int) -> int:
        """Return the place of a probe that is not answered yet, among all arrivals."""
        log, number = self.logs[side], max(number, self._answered[side])
        if number == log.count:
            return self.arrivals
        return int(log.at("before", number)) + number + self._shift

    def _forget(self) -> None:
        """Forget tuples, but keep those without a star and those that later results can mean."""
        for side, log in self.logs.items():
            first = int(self.stars.ends[side.other][0])
            other = self.logs[side.other]
            met = other.at("before", first) if first < other.count else log.count
            log.forget(min(int(self.stars.ends[side][0]), met - self.reach))
            self.segments[side].forget(met - self.reach)

    def oldest_row(self, side: Side) -> int | None:
        """Return the oldest row that a pair can refer to, of the staged tuples of ``side``.

        None if pairs decoded later can refer only to tuples of that side that are staged later.
        """
        log = self.logs[side]
        if log.kept == log.count:
            return None
        return int(log.at("row", log.kept)) if log.has("row") else log.kept

    def answered(self, told: ToldFailures) -> dict[Side, tuple[int, int]]:
        """Return number and place of each side's first probe that is not completely answered."""
        found = {}
        for side in Side:
            begin, _ = told.begins.get(side, (self.first_open(side), 0))
            number = max(begin, self._answered[side])
            found[side] = number, self.place(side, number)
        return found

    def needed(self, answered: dict[Side, tuple[int, int]]) -> dict[Side, int]:
        """Return the number of each side's first tuple that must be sent again.

        These are the probes that are not answered, and the tuples that they can meet. Tuples are
        numbered from the beginning of the execution.
        """
        found = {}
        for side in Side:
            probe, place = answered[side.other]
            met = place - self._shift - probe
            found[side] = max(0, min(answered[side][0], met - self.reach)) + self._left_out[side]
        return found

    def sent_from(self, side: Side) -> int:
        """Return the number of the oldest tuple of ``side`` that may have to be sent again."""
        return self.logs[side].kept + self._left_out[side]

    def restarted(
        self, again: Again, answered: dict[Side, tuple[int, int]], live: Sequence[int]
    ) -> "ResultDecoder":
        """Return a decoder for what follows a CLEAR after which tuples are sent again.

        Parameters
        ----------
        again : Again
            The tuples that are sent again.
        answered : dict of Side to tuple of int
            Result of :meth:`answered`.
        live : sequence of int
            The cores that take turns from the CLEAR on.
        """
        other = ResultDecoder(*self._settings, detailed=self._detailed, origins=self._origins)
        other.begin_segment(live)
        for side, numbers in again.numbers.items():
            log, known = self.logs[side], numbers - self._left_out[side]
            at = again.places[side]
            columns: dict[str, Array] = {
                "before": at - np.arange(len(at)),
                "row": np.asarray(_rows_of(log, known), np.int64),
            }
            if log.has("valid"):
                columns["valid"] = log.read("valid", known)
            other.logs[side].append(Columns(columns))
            first = int(numbers[0]) if len(numbers) else log.count + self._left_out[side]
            other._left_out[side] = first
            other._answered[side] = answered[side][0] + self._left_out[side] - first
        other.arrivals = self.arrivals
        other.stars.stage(again.places)
        return other

    @property
    def _shift(self) -> int:
        """Number of arrivals before the first one that this decoder knows."""
        return sum(self._left_out.values())

    def _note_faults(self, results: ResultWords) -> None:
        flags = int(np.bitwise_or.reduce(results.overflow, initial=0))
        disorder, illegal = bool(results.disorder.any()), bool(results.illegal.any())
        if flags or disorder or illegal:
            sides = tuple(side for side in Side if flags >> side & 1)
            self.faults = Faults(sides, disorder, illegal)


def _rows_of(log: ColumnLog, numbers: Int64s) -> Int64s:
    """Return the rows of tuples; they equal the tuple numbers unless rows were left out."""
    return log.read("row", numbers) if log.has("row") else numbers


# Results of a chain of cores as pairs of rows: they name tuples by their numbers.


class OrdinalDecoder(ResultDecoder):
    """Turns results of a handshake join into pairs of rows.

    A pair says the numbers of its tuples within their sides, modulo a power of two. They are the
    last ones with these bits that were sent; so a tuple has to be compared before the host has sent
    that many more of its side. Nothing is complete, and nothing forgotten, before the mark.

    Parameters
    ----------
    See :class:`ResultDecoder`.
    """

    def flush(self) -> None:
        """Announce that FLUSH was sent: its mark says by itself that all pairs have come."""

    def _announce(self, places: dict[Side, Int64s]) -> None:
        pass

    def _pairs(
        self, results: UInt64s, side: Side, at: Int64s, stars: Int64s, stamps: UInt64s | None
    ) -> Columns:
        """Pairs at the places ``at``, which tuples of ``side`` have found."""
        own, layout = results[at], self._codec.result
        numbers = {
            of: self._unwrapped(of, unpack_field(own, layout[of.name.lower()])) for of in Side
        }
        places = {of: self.logs[of].read("before", numbers[of]) + numbers[of] for of in Side}
        columns: dict[str, Array] = {
            "left": _rows_of(self.logs[Side.R], numbers[Side.R]),
            "right": _rows_of(self.logs[Side.S], numbers[Side.S]),
        }
        if self._detailed:
            r_first = places[Side.R] < places[Side.S]
            columns["probe"] = np.maximum(places[Side.R], places[Side.S])
            columns["stored"] = np.where(r_first, numbers[Side.R], numbers[Side.S])
        if stamps is not None:
            columns["emitted"] = stamps[at]
        return self._valid_pairs(Columns(columns), numbers)

    def _unwrapped(self, side: Side, tags: Int64s) -> Int64s:
        """Return the numbers of tuples of a side, of which a result has the lowest bits."""
        newest = self.logs[side].count - 1
        bits = self._codec.result[side.name.lower()].bits
        numbers: Int64s = newest - ((newest - tags) & ((1 << bits) - 1))
        if int(numbers.min()) < 0:
            raise DeviceError(
                f"The device answered with a tuple {int(tags[numbers < 0][0])} of side "
                f"{side.name}, but only {newest + 1} were sent."
            )
        return numbers

    def _advance(self, side: Side, stars: Int64s, stamps: UInt64s | None) -> Columns:
        return _NO_STARS

    def _forget(self) -> None:
        pass

    @property
    def complete(self) -> int:
        """All results of so many first arrivals have been decoded."""
        return self.arrivals if self.marks else 0


def result_decoder(
    manifest: Manifest, ordering: Ordering, window: Window, **options: bool
) -> ResultDecoder:
    """Return what decodes the results of an accelerator, with the parameters of its class."""
    kind = ResultDecoder if manifest.chain is None else OrdinalDecoder
    return kind(manifest, ordering, window, **options)
