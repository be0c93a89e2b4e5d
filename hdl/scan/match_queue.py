# SPDX-License-Identifier: Apache-2.0
"""Match queue: turns rows of match bits into one result word per cycle."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.pointer_queue import PointerQueue
from hdl.words.results import node_result

from .lane_serializer import LaneSerializer
from .layouts import lane_matches_layout, match_layout, rounds_members
from .pair_serializer import PairSerializer

__all__ = ["MatchQueue"]


class MatchQueue(wiring.Component):
    """Queue the rows that have matches, and send each match as a pair, ordered by lane and probe.

    Rows in which a round ends are queued as well, and a star follows the pairs of the round. The
    last row of a pass is followed by the star and the mark of its group, if it has them. The
    scan continues while a row with many matches is sent, until the queue has no room but for the
    rows in flight.

    With digests, there is one match bit per lane: whether any probe may match. These candidates
    leave lane by lane at ``candidates``, and those that come back at ``verified`` are sent.

    Latency: :attr:`latency` cycles from ``matches`` to the first word: 3, and 3 more with several
    lanes; verification comes on top. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    in_flight : int
        Rows that may still arrive after ``room`` fell.
    depth : int
        Number of rows that can wait, a power of two.
    bits : int
        Width of ``matches`` for each lane.

    Members
    -------
    matches_valid : In(1)
        Add ``matches`` to the queue.
    matches : In
    room : Out(1)
        ``in_flight`` more rows can be taken; from a register.
    results : Out(stream.Signature(node_result(parameters, 0)))
    candidates : Out(stream.Signature(lane_matches_layout(parameters, 1)))
        Candidate lanes; only with digests.
    verified : In(stream.Signature(lane_matches_layout(parameters, probes)))
        Verified lanes; only with digests.
    """

    def __init__(self, parameters, *, in_flight, bits, depth=16):
        if depth <= in_flight:
            raise ValueError(f"A queue of {depth} rows cannot hold {in_flight} rows in flight")
        self.parameters = parameters
        self.in_flight = in_flight
        self.depth = depth
        self.bits = bits
        self._lanes = LaneSerializer(parameters, bits=bits) if parameters.lanes > 1 else None
        self._pairs = self.serializer()
        self.latency = 1 + self._pairs.latency + (self._lanes.latency if self._lanes else 0)
        self._looped = parameters.digest_bits is not None
        super().__init__(
            {
                "matches_valid": In(1),
                "matches": In(match_layout(parameters, bits)),
                "room": Out(1),
                "results": Out(stream.Signature(node_result(parameters, 0))),
                **self.members(),
            }
        )

    def serializer(self):
        """Return what turns lanes into results."""
        return PairSerializer(self.parameters)

    def members(self):
        """Return the members beside those that every queue has."""
        if not self._looped:
            return {}
        probes = self.parameters.probes
        return {
            "candidates": Out(stream.Signature(lane_matches_layout(self.parameters, 1))),
            "verified": In(stream.Signature(lane_matches_layout(self.parameters, probes))),
        }

    def elaborate(self, platform):
        m = Module()
        layout = match_layout(self.parameters, self.bits)
        m.submodules.queue = queue = PointerQueue(layout, depth=self.depth, reserve=self.in_flight)
        m.submodules.pairs = pairs = self._pairs
        connect(m, pairs.o, flipped(self.results))
        m.d.comb += [
            queue.last.eq(self.matches),
            queue.add.eq(self.matches_valid),
            self.room.eq(queue.room),
        ]

        rows = stream.Signature(layout).create()
        m.d.comb += [
            rows.valid.eq(queue.filled),
            rows.payload.eq(queue.first),
            queue.take.eq(rows.valid & rows.ready),
        ]
        found = pairs.i
        if self._looped:
            connect(m, flipped(self.verified), pairs.i)
            found = flipped(self.candidates)
        if self._lanes:
            m.submodules.lanes = lanes = self._lanes
            connect(m, rows, lanes.i)
            connect(m, lanes.o, found)
        else:
            only = found.payload
            m.d.comb += [
                found.valid.eq(rows.valid),
                rows.ready.eq(found.ready),
                only.matches.eq(Value.cast(rows.payload.matches)),
                only.row.eq(rows.payload.row),
                only.last.eq(rows.payload.last),
                only.ending.eq(rows.payload.ending),
                *(only[name].eq(rows.payload[name]) for name in rounds_members(self.parameters, 1)),
            ]
        return m
