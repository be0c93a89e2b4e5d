# SPDX-License-Identifier: Apache-2.0
"""Reducing queue: turns rows of match bits into one VALUE per probe."""

from amaranth.lib.wiring import In, Out

from hdl.scan.match_queue import MatchQueue
from hdl.words.match_values import stored_value_shape
from hdl.words.spans import pointer_layout

from .match_reducer import MatchReducer

__all__ = ["ReducingQueue"]


class ReducingQueue(MatchQueue):
    """Queue the rows that have matches, and reduce their matches by probe.

    It is a :class:`hdl.scan.match_queue.MatchQueue` with a :class:`MatchReducer` in the place of
    the pair serializer.

    Latency: :attr:`latency` cycles from ``matches`` to the first word: 6, and 3 more with several
    lanes. Throughput: 1 lane with matches per cycle.

    Parameters
    ----------
    parameters, in_flight, depth, bits
        Those of a ``MatchQueue``.

    Members
    -------
    place, value, finished
        Those of a :class:`MatchReducer`.

    All others are those of a ``MatchQueue``.
    """

    def serializer(self):
        """Return what turns lanes into results."""
        return MatchReducer(self.parameters)

    def members(self):
        """Return the members beside those that every queue has."""
        return {
            "place": Out(pointer_layout(self.parameters)),
            "value": In(stored_value_shape(self.parameters)),
            "finished": Out(1),
        }

    def elaborate(self, platform):
        m = super().elaborate(platform)
        reducer = self._pairs
        m.d.comb += [
            self.place.eq(reducer.place),
            reducer.value.eq(self.value),
            self.finished.eq(reducer.finished),
        ]
        return m
