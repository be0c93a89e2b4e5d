# SPDX-License-Identifier: Apache-2.0
"""Results of a chain of cores as pairs of rows: they name tuples by their numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from host.errors import DeviceError
from host.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.side import Side
from host.reference.window import Window
from host.results.decoder import ResultDecoder, StarLatency, rows_of
from host.results.restartable_decoder import RestartableDecoder
from host.runtime import Columns
from host.words import unpack_field

__all__ = ["OrdinalDecoder", "result_decoder"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


class OrdinalDecoder(ResultDecoder):
    """Turns results of a handshake join into pairs of rows.

    A pair says the numbers of its tuples within their sides, modulo a power of two. They are the
    last ones with these bits that were sent; so a tuple has to be compared before the host has sent
    that many more of its side. Nothing is complete, and nothing forgotten, before the mark.

    Parameters
    ----------
    See :class:`host.results.decoder.ResultDecoder`.
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

    The other parameters are those of :class:`host.results.decoder.ResultDecoder`.
    """
    kind: type[ResultDecoder] = RestartableDecoder if restarts else ResultDecoder
    if manifest.chain is not None:
        kind = OrdinalDecoder
    return kind(manifest, ordering, window, detailed=detailed, changes=changes, origins=origins)
