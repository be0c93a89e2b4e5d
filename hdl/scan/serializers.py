# SPDX-License-Identifier: Apache-2.0
"""From matches of lanes to a stream of results."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.queues import PointerQueue
from hdl.streams.registers import StreamRegister
from hdl.words.prepared import ending_layout, pointer_layout, span_layout
from hdl.words.results import ResultKind, node_result
from hdl.words.values import round_of

from .layouts import group_layout, lane_matches_layout, match_layout, rounds_members

__all__ = ["GroupCollector", "LaneSerializer", "MatchQueue", "PairSerializer"]


class GroupCollector(wiring.Component):
    """Collect the probes of the open group, and the first and last row of its pass.

    The probes themselves wait in the slots of the scanner; ``add_to`` selects the slot. The ingress
    closes groups, not the collector, so that all cores close the same ones. A closed group waits at
    ``group``. The collector is not ``ready`` until the group is taken, and for ``hold`` cycles, the
    first of which is that of the transfer. So the scanner can still use the contents of the slots.

    Latency: 1 cycle. Throughput: 1 probe per cycle within a group, and ``hold`` cycles between two
    groups.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    hold : int
        Cycles after the transfer of a group in which the slots stay unchanged, at least one.

    Members
    -------
    ready, soon : Out(1)
        A probe, or the end of a group, can be taken: in this cycle (``ready``), in the next one
        (``soon``).
    add : In(1)
        Take a probe that sees ``span``; only while ``ready``.
    span : In
    second, stop : In
        The row after the first row of ``span``, and the row after its last.
    add_to : Out(probes)
        Slot that takes the probe; one-hot.
    close : In(1)
        The group ends, including the probe of this cycle if there is one; only while ``ready``.
    ending : In
        What follows the closing group; its ``count`` is ignored.
    group : Out(stream.Signature(group_layout(parameters)))
    count : Out
        Number of probes collected.
    """

    def __init__(self, parameters, *, hold):
        if hold < 1:
            raise ValueError(f"A group must be held for at least one cycle, not {hold!r}")
        self.parameters = parameters
        self.hold = hold
        self.latency = 1
        super().__init__(
            {
                "ready": Out(1, init=1),
                "soon": Out(1),
                "add": In(1),
                "span": In(span_layout(parameters)),
                "second": In(pointer_layout(parameters)["row"].shape),
                "stop": In(pointer_layout(parameters)["row"].shape),
                "add_to": Out(parameters.engine.probes),
                "close": In(1),
                "ending": In(ending_layout(parameters)),
                "group": Out(stream.Signature(group_layout(parameters))),
                "count": Out(range(parameters.engine.probes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        group = Signal(group_layout(self.parameters), reset_less=True)
        slot = Signal(self.parameters.engine.probes, init=1)  # the next slot, one-hot
        held = Signal(self.hold - 1)
        closed = Signal()
        transfer = self.group.valid & self.group.ready
        # A probe changes its slot a cycle after it is added, so adding may resume in the last cycle
        # of the hold.
        holding = Cat(transfer, held)[: self.hold - 1]
        m.d.sync += [
            held.eq(holding),
            self.ready.eq(self.soon),
        ]
        m.d.comb += [
            self.soon.eq(~((closed & ~transfer) | self.close | (holding != 0))),
            self.add_to.eq(slot & self.add.replicate(self.parameters.engine.probes)),
            self.group.valid.eq(closed),
            self.group.payload.eq(group),
        ]
        with m.If(self.add):
            m.d.sync += [
                # The pass ends where the span of the last probe ends, as spans never move back.
                group.stop.eq(self.stop),
                group.newest_tail.eq(self.span.tail.row),
                self.count.eq(self.count + 1),
                slot.eq(slot.rotate_left(1)),
            ]
        # A group without probes has a first row, too: the ring is kept from there on for the probes
        # that follow, however long the pass of this group has to wait.
        with m.If((self.add | self.close) & (self.count == 0)):
            m.d.sync += [
                group.first.eq(self.span.tail.row),
                group.second.eq(self.second),
                group.oldest_head.eq(self.span.head.row),
            ]
            if self.parameters.engine.rounds:
                m.d.sync += [
                    group.tail_lane.eq(self.span.tail.lane),
                    group.head_lane.eq(self.span.head.lane),
                ]
        with m.If(self.close):
            m.d.sync += [
                closed.eq(1),
                group.ending.eq(self.ending),
                group.ending.count.eq(self.count + self.add),
            ]
        with m.If(transfer):
            m.d.sync += [closed.eq(0), self.count.eq(0), slot.eq(1)]
        return m


def split(bits):
    """Return the lowest bit that is set, as a one-hot value, and ``bits`` without it.

    Both are computed by a carry chain: a set bit is the lowest one unless the borrow passes it.
    Mapped to LUTs, any tree takes one level per two or three bits.
    """
    borrowed = (bits - 1)[: len(bits)]
    return bits & ~borrowed, bits & borrowed


def position(bits):
    """Return the index of the only bit that is set; zero if none is."""
    digits = range((len(bits) - 1).bit_length())
    return Cat(Cat(bits[n] for n in range(len(bits)) if n >> d & 1).any() for d in digits)


class LaneSerializer(wiring.Component):
    """Send the lanes of a row that have a match, in order, one per cycle.

    The last row of a pass also sends its last lane. With rounds, lanes in which a round ends are
    sent as well. These lanes need no match. A row waits for one cycle while the lanes to send are
    determined. The current lane is held in a one-hot register, so that no two selections among all
    lanes follow each other in one cycle.

    Latency: 3 cycles. Throughput: 1 lane per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    bits : int
        Width of ``matches`` for each lane.

    Members
    -------
    i : In(stream.Signature(match_layout(parameters, bits)))
    o : Out(stream.Signature(lane_matches_layout(parameters, bits)))
    """

    def __init__(self, parameters, *, bits):
        self.parameters = parameters
        self.bits = bits
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(match_layout(parameters, bits))),
                "o": Out(stream.Signature(lane_matches_layout(parameters, bits))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self.parameters.engine.lanes
        m.submodules.output = output = StreamRegister(self.o.payload.shape())
        connect(m, output.o, flipped(self.o))

        waiting = Signal(match_layout(self.parameters, self.bits), reset_less=True)
        waits = Signal()  # `waiting` is valid
        marked = Signal(lanes, reset_less=True)  # lanes of `waiting` to send
        row = Signal(match_layout(self.parameters, self.bits), reset_less=True)  # row being sent
        sending = Signal()  # `row` is valid
        chosen = Signal(lanes, reset_less=True)  # current lane, one-hot
        later = Signal(lanes, reset_less=True)  # lanes left after the current one
        more = Signal()  # any of `later` is set
        take = Signal()  # `waiting` moves to `row`
        lane = output.i
        m.d.comb += [
            take.eq(~more & (lane.ready | ~sending)),
            lane.valid.eq(sending),
            lane.payload.matches.eq(Cat((matches & chosen).any() for matches in row.matches)),
            lane.payload.lane.eq(position(chosen)),
            lane.payload.row.eq(row.row),
            lane.payload.last.eq(row.last & chosen[-1]),
            lane.payload.ending.eq(row.ending),
            *self.rounds_of(lane.payload, row, chosen),
            self.i.ready.eq(take | ~waits),
        ]
        with m.If(take):
            m.d.sync += [row.eq(waiting), sending.eq(waits)]
        with m.If(take | lane.ready):
            # Both outcomes are computed before it is known which of them is needed.
            (first, rest), (following, remaining) = split(marked), split(later)
            m.d.sync += [
                chosen.eq(Mux(take, first, following)),
                later.eq(Mux(take, rest, remaining)),
                more.eq(Mux(take, rest.any() & waits, remaining.any())),
            ]
        with m.If(self.i.ready):
            ends = self.i.payload.last << lanes - 1
            if self.parameters.engine.rounds:
                ends |= self.i.payload.ends
            m.d.sync += [
                waiting.eq(self.i.payload),
                waits.eq(self.i.valid),
                marked.eq(reduce(or_, self.i.payload.matches) | ends),
            ]
        return m

    def rounds_of(self, lane, row, chosen):
        """Return the assignments of what the chosen lane of a row says about rounds."""
        if not self.parameters.engine.rounds:
            return []
        return [lane.rounds.eq(row.rounds), lane.ends.eq((row.ends & chosen).any())]


def lowest(bits):
    """Return the index of the lowest bit that is set, and ``bits`` without that bit."""
    index = Const(0, range(len(bits)))
    for n in reversed(range(len(bits))):
        index = Mux(bits[n], n, index)
    return index[: (len(bits) - 1).bit_length()], bits & (bits - 1)[: len(bits)]


class PairSerializer(wiring.Component):
    """Send each match as a pair, in order of probe, then the star and the mark of the group.

    With rounds, the star of a round follows the pairs of its last lane.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(lane_matches_layout(parameters, probes)))
    o : Out(stream.Signature(node_result(parameters, 0)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(
                    stream.Signature(lane_matches_layout(parameters, parameters.engine.probes))
                ),
                "o": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probes = self.parameters.engine.probes
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))

        lane = Signal(
            lane_matches_layout(self.parameters, self.parameters.engine.probes), reset_less=True
        )
        loaded = Signal()
        rounds = self.parameters.engine.rounds
        todo = Signal(probes + rounds + 2)  # pairs, star of a round, star, mark
        index, rest = lowest(todo)
        base = Signal(
            self.parameters.engine.probe_bits
        )  # probes since the last star, before this group
        word = output.i
        pair = word.payload.body.pair
        is_pair = todo[:probes].any()
        done = Signal()
        m.d.comb += [
            word.valid.eq(todo.any()),
            done.eq((rest == 0) & (word.ready | ~word.valid)),
            self.i.ready.eq(done),
        ]
        with m.If(is_pair):
            m.d.comb += [
                word.payload.kind.eq(ResultKind.PAIR),
                pair.probe.eq(base + index),
                pair.lane.eq(lane.lane),
                pair.row.eq(lane.row),
            ]
        with m.Else():
            m.d.comb += [
                word.payload.kind.eq(Mux(todo[:-1].any(), ResultKind.STAR, ResultKind.MARK)),
                word.payload.body.punctuation.eq(lane.ending.punctuation),
            ]
            if rounds:
                self.elaborate_star(m, word.payload.body.punctuation, todo[probes:])
        if rounds:
            m.d.comb += word.payload.round.eq(
                round_of(m, self.parameters, lane.rounds, lane.lane, lane.row)
            )
        with m.If(word.ready):
            m.d.sync += todo.eq(rest)
        with m.If(done):
            following = self.i.payload
            star, mark = following.ending.star, following.ending.mark
            m.d.sync += loaded.eq(self.i.valid)
            with m.If(self.i.valid):
                punctuation = Cat(star, mark) & following.last.replicate(2)
                ends = following.ends if rounds else Const(0, 0)
                m.d.sync += [lane.eq(following), todo.eq(Cat(following.matches, ends, punctuation))]
            with m.If(loaded & lane.last):
                m.d.sync += base.eq(Mux(lane.ending.star, 0, base + lane.ending.count))
        return m

    def elaborate_star(self, m, punctuation, todo):
        """Let the star of a round report no faults, and only that star and a mark be ``inner``."""
        of_round, star, _ = todo
        with m.If(of_round):
            m.d.comb += [Value.cast(punctuation).eq(0), punctuation.inner.eq(1)]
        with m.Elif(star):
            m.d.comb += punctuation.inner.eq(0)


class MatchQueue(wiring.Component):
    """FIFO of the rows that have matches; sends each match as a pair, ordered by lane and probe.

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
        self._lanes = LaneSerializer(parameters, bits=bits) if parameters.engine.lanes > 1 else None
        self._pairs = self.serializer()
        self.latency = 1 + self._pairs.latency + (self._lanes.latency if self._lanes else 0)
        self._looped = parameters.engine.digest_bits is not None
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
        probes = self.parameters.engine.probes
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
