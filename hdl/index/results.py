# SPDX-License-Identifier: Apache-2.0
"""Results of an index, group by group."""

from amaranth import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.columns import KeyColumn
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import delayed
from hdl.words.prepared import pointer_layout
from hdl.words.results import ResultKind, node_result

from .layouts import (
    bank_count,
    closed_layout,
    found_layout,
    group_count,
    queues_layout,
    walks_waiting,
)

__all__ = ["GroupResults", "MatchQueues"]


class MatchQueues(wiring.Component):
    """One FIFO for each group of probes: keep its matches, and read one queue after the other.

    A match may arrive for any queue that has not been left since it was last read. Matches are
    taken from the current queue; ``leaves`` advances to the next one, and from the last queue to
    the first.

    Latency: 2 cycles from a match until it is ``waiting``; :attr:`READING` from ``take`` to
    ``first``. Throughput: 1 match in and 1 match out per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    in_flight : int
        Matches that may still arrive after ``room`` fell.

    Members
    -------
    The number of ``queues`` is that of :func:`hdl.index.layouts.group_count`.

    found_valid : In(1)
        ``found`` is a match for the queue ``found_queue``.
    found_queue : In(range(queues))
    found : In(found_layout(parameters))
    room : Out(queues)
        For each queue: ``in_flight`` more matches can be taken; valid 2 cycles after the last
        match.
    waiting : Out(1)
        The current queue holds a match.
    take : In(1)
        Take a match; only while ``waiting``.
    first : Out(found_layout(parameters))
        The match taken :attr:`READING` cycles ago.
    leaves : In(1)
        Leave the current queue, which is empty and has served its last group; not together with
        ``take``.
    """

    #: Total number of entries, and the least number per queue, which takes precedence; powers of
    #: two.
    MATCHES = 512
    LEAST = 32
    READING = KeyColumn.LATENCY

    def __init__(self, parameters, *, in_flight):
        self.in_flight = in_flight
        self.queues = queues = group_count(parameters)
        self.depth = max(self.LEAST, self.MATCHES // queues)
        self.latency = 2
        layout = found_layout(parameters)
        super().__init__(
            {
                "found_valid": In(1),
                "found_queue": In(range(queues)),
                "found": In(layout),
                "room": Out(queues),
                "waiting": Out(1),
                "take": In(1),
                "first": Out(layout),
                "leaves": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = ceil_log2(self.depth)
        m.submodules.matches = matches = KeyColumn(
            width=self.found.shape().size, depth=self.depth * self.queues, late=True
        )
        heads = [Signal(bits + 1, name=f"head_{n}") for n in range(self.queues)]  # with a wrap bit
        tail = Signal(bits + 1)  # of the current queue; the others are zero
        turn, following = Signal(range(self.queues)), Signal(range(self.queues), init=1)
        # The memory is written a cycle late, so the current queue is readable up to its write
        # pointer of a cycle ago.
        written = Signal(bits + 1)
        m.d.comb += [
            matches.place.eq(Cat(Array(heads)[self.found_queue][:bits], self.found_queue)),
            matches.row.eq(self.found),
            matches.write.eq(self.found_valid),
            matches.address.eq(Cat(tail[:bits], turn)),
            self.first.eq(matches.data),
            self.waiting.eq(written != tail),
        ]
        m.d.sync += written.eq(Mux(self.leaves, Array(heads)[following], Array(heads)[turn]))
        for n, head in enumerate(heads):
            with m.If(self.found_valid & (self.found_queue == n)):
                m.d.sync += head.eq(head + 1)
            with m.If(self.leaves & (turn == n)):
                m.d.sync += head.eq(0)
            level = Signal(bits + 1, name=f"level_{n}")
            m.d.sync += [
                level.eq(head - Mux(turn == n, tail, 0)),
                self.room[n].eq(level < self.depth - self.in_flight),
            ]
        with m.If(self.leaves):
            m.d.sync += [tail.eq(0), turn.eq(following), following.eq(following + 1)]
        with m.Elif(self.take):
            m.d.sync += tail.eq(tail + 1)
        return m


class GroupResults(wiring.Component):
    """Send the matches of all groups up to a star or mark, then the star and mark themselves.

    Groups overlap: the walks of one group begin while those of the previous one are still in
    progress. A group is complete when all of its walks have begun and ended. Matches wait in
    :class:`MatchQueues`. A group that is followed by a star or a mark is the last one of its queue;
    if every group has a star, every group has a queue of its own. Only the queue of the oldest
    group is read. So any group before the next star may fill the output, and one long walk does not
    hold back the other groups. A group without star and mark is finished as soon as it is complete.

    Latency: 6 cycles from a match to its word; 7 from the end of the last walk to the star, 8 if
    that walk has a match. Throughput: 1 word per cycle, with an idle cycle between two groups that
    have a queue each; 2 cycles per group without star and mark, during which words are still sent.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    in_flight : int
        Matches that may still arrive after ``room`` fell.

    Members
    -------
    The number of ``groups`` is that of :func:`hdl.index.layouts.group_count`.

    take : In(groups)
        A group with this number begins; one-hot.
    group : In(closed_layout(parameters))
        The group that begins.
    free : Out(groups)
        Group numbers that are not in use.
    started : In(groups).array(banks)
        For each bank of the head table: a walk of this group begins; one-hot.
    final : In(groups)
        No walk of this group begins after this cycle; one-hot.
    ended : In(groups)
        A walk of this group has ended; one-hot.
    queues : Out(queues_layout(parameters))
        Queue of each group in use.
    found_valid : In(1)
        ``found`` is a match for the queue ``found_queue``.
    found_queue : In(range(groups))
    found : In(found_layout(parameters))
    room : Out(groups)
        For each queue: ``in_flight`` more matches can be taken.
    idle : Out(1)
        No group number is in use.
    oldest : Out
        First row of the ring that must be kept; only while not ``idle``.
    release : Out(1)
        A group has been sent, and its ``released`` probes are no longer needed.
    released : Out
    results : Out(stream.Signature(node_result(parameters, 0)))
    """

    #: Depth of the output queue in words, a power of two.
    OUTPUT = 16
    #: Words that can still arrive after ``room`` fell.
    OUTPUT_IN_FLIGHT = 5
    #: Walks of one group that can be in progress beside the two of every waiting visit: those being
    #: looked up, and those in the loop of the walker.
    MOVING = 32

    def __init__(self, parameters, *, in_flight):
        self.parameters = parameters
        self.in_flight = in_flight
        self.groups = groups = group_count(parameters)
        self.latency = 6
        super().__init__(
            {
                "take": In(groups),
                "group": In(closed_layout(parameters)),
                "free": Out(groups, init=(1 << groups) - 1),
                "started": In(groups).array(bank_count(parameters)),
                "final": In(groups),
                "ended": In(groups),
                "queues": Out(queues_layout(parameters)),
                "found_valid": In(1),
                "found_queue": In(range(groups)),
                "found": In(found_layout(parameters)),
                "room": Out(groups),
                "idle": Out(1, init=1),
                "oldest": Out(pointer_layout(parameters)["row"].shape),
                "release": Out(1),
                "released": Out(range(parameters.engine.probes + 1)),
                "results": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        layout = self.results.payload.shape()
        m.submodules.output = output = PointerQueue(layout, depth=self.OUTPUT)
        turn = Signal(range(self.groups))  # group that is being sent
        room = Signal()  # the output queue has room
        done = Signal()
        group = self.elaborate_groups(m, turn)
        complete = self.elaborate_walks(m, done << turn)
        ending = group.ending
        punctuated = ending.star | ending.mark
        leaves = Signal()
        m.submodules.matches = matches = MatchQueues(self.parameters, in_flight=self.in_flight)
        take = matches.take

        # Registered: the current group is complete, and if it has a star or mark, its queue is
        # empty.
        ended = Signal()
        last = Signal()  # the group is the last of its queue
        star, mark = Signal(), Signal()
        both = star & mark
        m.d.comb += [
            *(
                getattr(matches, name).eq(getattr(self, name))
                for name in ("found_valid", "found_queue", "found")
            ),
            self.room.eq(matches.room),
            matches.leaves.eq(leaves),
            take.eq(matches.waiting & room & ~(ended & (star | mark))),
            done.eq(ended & room & ~both),
            leaves.eq(done & last),
            self.oldest.eq(group.first),
            self.release.eq(done),
            self.released.eq(ending.count),
        ]
        with m.If(~ended):
            m.d.sync += [
                ended.eq(complete.bit_select(turn, 1) & ~(punctuated & matches.waiting)),
                last.eq(punctuated),
                star.eq(ending.star),
                mark.eq(ending.mark),
            ]
        with m.Elif(room):
            m.d.sync += star.eq(0)
        with m.If(done):
            m.d.sync += [ended.eq(0), turn.eq(turn + 1)]

        # The next word, delayed while its match is read.
        word = {
            "valid": take | (ended & room & (star | mark)),
            "kind": Mux(take, ResultKind.PAIR, Mux(star, ResultKind.STAR, ResultKind.MARK)),
            "punctuation": Value.cast(ending.punctuation),
        }
        for cycle in range(MatchQueues.READING):
            word = delayed(m, word, f"word_{cycle}", flags=("valid",))
        sent = Signal(layout, reset_less=True)
        pair = sent.body.pair
        add = Signal()
        m.d.sync += [sent.kind.eq(word["kind"]), add.eq(word["valid"])]
        m.d.comb += [
            output.last.eq(sent),
            output.add.eq(add),
            output.take.eq(output.filled & self.results.ready),
            self.results.valid.eq(output.filled),
            self.results.payload.eq(output.first),
        ]
        m.d.sync += room.eq(output.level < self.OUTPUT - self.OUTPUT_IN_FLIGHT)
        with m.If(word["kind"] == ResultKind.PAIR):
            m.d.sync += [
                pair.probe.eq(matches.first.number),
                pair.row.eq(matches.first.place),
            ]
        with m.Else():
            m.d.sync += sent.body.punctuation.eq(word["punctuation"])
        return m

    def elaborate_groups(self, m, turn):
        """Store every group that begins; return the one that is being sent."""
        layout = closed_layout(self.parameters)
        m.submodules.groups = groups = memory.Memory(shape=layout, depth=self.groups, init=[])
        write, read = groups.write_port(), groups.read_port(domain="comb")
        number = Signal(range(self.groups))  # of the next group; numbers are used in turn
        m.d.comb += [
            write.addr.eq(number),
            write.data.eq(self.group),
            write.en.eq(self.take.any()),
            read.addr.eq(turn),
        ]
        m.d.sync += number.eq(number + self.take.any())
        queue = Signal(range(self.groups))  # of the next group
        ending = self.group.ending
        m.d.sync += queue.eq(queue + (self.take.any() & (ending.star | ending.mark)))
        for n in range(self.groups):
            with m.If(self.take[n]):
                m.d.sync += self.queues[n].eq(queue)
        return read.data

    def elaborate_walks(self, m, sent):
        """Count the walks of every group; return which groups are complete."""
        complete, begun = Signal(self.groups), Signal(self.groups)
        m.d.sync += [
            begun.eq((begun & ~self.take) | self.final),  # all walks of the group have begun
            self.free.eq((self.free & ~self.take) | sent),
            self.idle.eq(self.free.all() & ~self.take.any()),
        ]
        for n in range(self.groups):
            walks = Signal(
                range(self.MOVING + 2 * walks_waiting(self.parameters)), name=f"walks_{n}"
            )
            m.d.sync += [
                walks.eq(walks + sum(bank[n] for bank in self.started) - self.ended[n]),
                complete[n].eq(begun[n] & ~self.free[n] & (walks == 0)),
            ]
        return complete
