# SPDX-License-Identifier: Apache-2.0
"""Decode the results of an accelerator that is cleared amid a join, or names tuples by ordinals."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from host.errors import DeviceError
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.arrivals import Side, UInt64s
from host.reference.window import Window
from host.runtime import Columns
from host.session.decoder import ResultDecoder, StarLatency, ToldFailures, rows_of

__all__ = [
    "Again",
    "OrdinalDecoder",
    "ReplayLog",
    "RestartableDecoder",
    "result_decoder",
]

# The tuples that were sent and that a later probe can still meet, to be sent again.

Int64s = npt.NDArray[np.int64]


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


class ReplayLog:
    """Keeps the words of tuples, in the order of arrival, batch by batch.

    Tuples are numbered within their side from the beginning of the execution.

    Parameters
    ----------
    codec : WordCodec
        Codec of the accelerator's words.
    """

    def __init__(self, codec: WordCodec) -> None:
        self._codec = codec
        self._batches: list[UInt64s] = []
        self._firsts: list[dict[Side, int]] = []  # by batch: numbers of the next tuples before it
        self._counts = dict.fromkeys(Side, 0)

    @property
    def kept(self) -> int:
        """Number of words that are kept."""
        return sum(len(words) for words in self._batches)

    def append(self, words: UInt64s, counts: Mapping[Side, int]) -> None:
        """Add a copy of words that hold so many tuples of each side."""
        self._batches.append(words.copy())
        self._firsts.append(dict(self._counts))
        for side, count in counts.items():
            self._counts[side] += count

    def forget(self, before: Mapping[Side, int]) -> None:
        """Release batches whose tuples all have lower numbers."""
        while len(self._batches) > 1 and all(
            self._firsts[1][side] <= number for side, number in before.items()
        ):
            del self._batches[0], self._firsts[0]

    def again(self, first: Mapping[Side, int]) -> Again:
        """Return the tuples from the numbers ``first`` on, which must not have been forgotten."""
        words = np.concatenate(self._batches)
        sides, keys, times = self._codec.unpack_tuples(words)
        numbers = np.empty(len(sides), np.int64)
        for side in Side:
            mine = sides == side
            numbers[mine] = self._firsts[0][side] + np.arange(np.count_nonzero(mine))
        kept = np.flatnonzero(numbers >= np.where(sides == Side.R, first[Side.R], first[Side.S]))
        sides, numbers = sides[kept], numbers[kept]
        fields = {name: column[kept] for name, column in keys.items()}
        return Again(
            self._codec.pack_tuples(sides, fields, times[kept]),
            {side: numbers[sides == side] for side in Side},
            {side: np.flatnonzero(sides == side) for side in Side},
        )


# Decode the results of an accelerator that is cleared amid a join and gets tuples again.


class RestartableDecoder(ResultDecoder):
    """A :class:`ResultDecoder` that can be followed by another one after a CLEAR.

    The accelerator numbers tuples anew after CLEAR, and so does the following decoder. It gives
    places among all arrivals since the beginning, and drops the pairs of probes that were answered
    before.
    """

    def __init__(
        self, manifest: Manifest, ordering: Ordering, window: Window, **options: bool
    ) -> None:
        super().__init__(manifest, ordering, window, **options)
        self._settings = manifest, ordering, window
        # After a restart: tuples of each side that were left out, and probes answered before.
        self._left_out = dict.fromkeys(Side, 0)
        self._answered = dict.fromkeys(Side, 0)

    def first_open(self, side: Side) -> int:
        """Return the number of the first probe of ``side`` that is not completely answered."""
        return max(super().first_open(side), self._answered[side])

    def place(self, side: Side, number: int) -> int:
        """Return the place of a probe that is not answered yet, among all arrivals."""
        number = max(number, self._answered[side])
        if number == self.logs[side].count:
            return self.arrivals
        return super().place(side, number) + self._shift

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
    ) -> "RestartableDecoder":
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
        manifest, ordering, window = self._settings
        other = RestartableDecoder(
            manifest, ordering, window, detailed=self._detailed, origins=self._origins
        )
        other.begin_segment(live)
        for side, numbers in again.numbers.items():
            log, known = self.logs[side], numbers - self._left_out[side]
            at = again.places[side]
            columns: dict[str, npt.NDArray[Any]] = {
                "before": at - np.arange(len(at)),
                "row": np.asarray(rows_of(log, known), np.int64),
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

    def _pairs(
        self, results: UInt64s, side: Side, at: Int64s, stars: Int64s, stamps: UInt64s | None
    ) -> Columns:
        pairs = super()._pairs(results, side, at, stars, stamps)
        if not (self._shift or self._answered[side]):
            return pairs
        arrays = {**pairs.arrays, "probe": pairs["probe"] + self._shift}
        first = self.place(side, self._answered[side])
        return Columns(arrays).take(np.flatnonzero(arrays["probe"] >= first))


# Results of a chain of cores as pairs of rows: they name tuples by their numbers.


class OrdinalDecoder(ResultDecoder):
    """Turns results of a handshake join into pairs of rows.

    A pair says the numbers of its tuples within their sides, modulo a power of two. They are the
    last ones with these bits that were sent; so a tuple has to be compared before the host has sent
    that many more of its side. Nothing is complete, and nothing forgotten, before the mark.

    Parameters
    ----------
    See :class:`host.session.decoder.ResultDecoder`.
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
        columns: dict[str, npt.NDArray[Any]] = {
            "left": rows_of(self.logs[Side.R], numbers[Side.R]),
            "right": rows_of(self.logs[Side.S], numbers[Side.S]),
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

    def _advance(self, side: Side, stars: Int64s, stamps: UInt64s | None) -> StarLatency:
        empty = np.zeros(0, np.int64)
        return StarLatency(empty, empty)

    def _forget(self) -> None:
        pass

    @property
    def complete(self) -> int:
        """All results of so many first arrivals have been decoded."""
        return self.arrivals if self.marks else 0


def result_decoder(
    manifest: Manifest,
    ordering: Ordering,
    window: Window,
    *,
    detailed: bool = True,
    changes: bool = False,
    origins: bool = False,
    restarts: bool = False,
) -> ResultDecoder:
    """Return what decodes the results of an accelerator, which may have to be cleared amid a join.

    The other parameters are those of :class:`host.session.decoder.ResultDecoder`.
    """
    kind: type[ResultDecoder] = RestartableDecoder if restarts else ResultDecoder
    if manifest.chain is not None:
        kind = OrdinalDecoder
    return kind(manifest, ordering, window, detailed=detailed, changes=changes, origins=origins)
