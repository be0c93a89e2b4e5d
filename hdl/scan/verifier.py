# SPDX-License-Identifier: Apache-2.0
"""Verifies lanes whose digest is that of a probe: is the rest of the key the same as well?"""

from amaranth import *
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import pointer_layout

from .key_ring import KeyRing
from .layouts import lane_matches_layout
from .pass_table import PassTable

__all__ = ["Verifier"]

#: Lanes that a multiplexer chooses from in one cycle.
CHOICE = 4


class Verifier(wiring.Component):
    """Let those matches of a lane pass whose probes have the same rest as the lane's key.

    The rests of the stored keys are in a ring of their own, which only this reads: a scan is not
    disturbed by candidates that turn out to be different keys. Those of the probes are in a
    :class:`PassTable`. A lane without a match left is dropped, unless it is the last of its pass.

    Latency: :attr:`latency` cycles from ``i`` to ``o``: the ring's, two to choose the lane, one to
    compare, one in the queue that takes up what was under way when ``o`` stopped. Throughput: 1
    lane per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; with digests.
    depth : int
        Lanes that the queue at the output can hold.

    Members
    -------
    store : In(1)
    place : In
        Where, as for a :class:`KeyRing`.
    key : In
        The rest of the key that is stored.
    add_to, rest, began, first, room, pending, oldest
        Of the :class:`PassTable`.
    i : In(stream.Signature(lane_matches_layout(parameters)))
        The matches of the digest.
    o : Out(stream.Signature(lane_matches_layout(parameters)))
    """

    def __init__(self, parameters, *, depth=16):
        self.parameters = parameters
        self.depth = depth
        self.latency = KeyRing.LATENCY + 4
        #: Lanes that may come after the queue was seen not to be full: those on their way, and one
        #: that is taken before the register of ``i.ready`` changes.
        self.in_flight = self.latency + 1
        if depth <= self.in_flight:
            raise ValueError(f"A queue of {depth} lanes cannot hold {self.in_flight} in flight")
        rest = parameters.key_bits - parameters.digest_bits
        row = pointer_layout(parameters)["row"].shape
        lanes = stream.Signature(lane_matches_layout(parameters))
        super().__init__(
            {
                "store": In(1),
                "place": In(pointer_layout(parameters)),
                "key": In(rest),
                "add_to": In(parameters.probes),
                "rest": In(rest),
                "began": In(1),
                "first": In(row),
                "room": Out(1, init=1),
                "pending": Out(1),
                "oldest": Out(row),
                "i": In(lanes),
                "o": Out(lanes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = KeyRing(self.parameters, self.key.shape())
        m.submodules.passes = passes = PassTable(self.parameters)
        ready = Signal(init=1)
        m.d.comb += [
            ring.store.eq(self.store),
            ring.place.eq(self.place),
            ring.key.eq(self.key),
            ring.address.eq(self.i.payload.row),
            passes.add_to.eq(self.add_to),
            passes.rest.eq(self.rest),
            passes.began.eq(self.began),
            passes.first.eq(self.first),
            self.room.eq(passes.room),
            self.pending.eq(passes.pending),
            self.oldest.eq(passes.oldest),
            self.i.ready.eq(ready),
        ]
        # The lane on its way: through the ring, two choices and the comparison.
        stages = [(self.i.valid & ready, self.i.payload)]
        for cycle in range(1, self.latency):
            valid = Signal(name=f"valid_{cycle}")
            lane = Signal.like(self.i.payload, name=f"lane_{cycle}", reset_less=True)
            m.d.sync += [valid.eq(stages[-1][0]), lane.eq(stages[-1][1])]
            stages.append((valid, lane))
        *_, read, chosen, _, compared = stages
        key = self.elaborate_choice(m, ring.keys, read[1].lane, chosen[1].lane)

        # The last lane of a pass takes the rests of its probes along, and ends it.
        rests = Signal.like(passes.rests, reset_less=True)
        m.d.sync += rests.eq(passes.rests)
        m.d.comb += passes.ended.eq(chosen[0] & chosen[1].last)

        same = Signal(self.parameters.probes, reset_less=True)
        m.d.sync += same.eq(Cat(key == rest for rest in rests))
        self.elaborate_output(m, compared, same, ready)
        return m

    def elaborate_choice(self, m, keys, first_lane, second_lane):
        """Return the key of a lane: chosen among a few of them, and a cycle later among these."""
        low = (CHOICE - 1).bit_length()
        width = len(keys[0])
        few = []
        for n in range(0, len(keys), CHOICE):
            some = Cat(keys[lane] for lane in range(n, min(n + CHOICE, len(keys))))
            few.append(Signal(width, name=f"key_of_{n // CHOICE}", reset_less=True))
            m.d.sync += few[-1].eq(some.word_select(first_lane[:low], width))
        key = Signal(width, reset_less=True)
        m.d.sync += key.eq(Cat(few).word_select(second_lane[low:], width))
        return key

    def elaborate_output(self, m, compared, same, ready):
        """Queue what is left of a lane; tell in time that there will be no room."""
        valid, lane = compared
        layout = lane.shape()
        m.submodules.queue = queue = fifo.SyncFIFO(width=layout.size, depth=self.depth)
        left = Signal(layout)
        m.d.comb += [
            left.eq(lane),
            left.matches.eq(lane.matches & same),
            queue.w_data.eq(left),
            queue.w_en.eq(valid & (lane.last | left.matches.any())),
            self.o.valid.eq(queue.r_rdy),
            self.o.payload.eq(queue.r_data),
            queue.r_en.eq(self.o.ready),
        ]
        m.d.sync += ready.eq(queue.w_level < self.depth - self.in_flight)
