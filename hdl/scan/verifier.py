# SPDX-License-Identifier: Apache-2.0
"""Verifier of candidates: which probes of the pass have this key and see it in their window?"""

from functools import reduce
from operator import and_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.columns import KeyColumn, fits
from hdl.streams.queues import PointerQueue
from hdl.words.prepared import pointer_layout

from .layouts import lane_matches_layout, rounds_members
from .ring import KeyRing, pass_reading, ring_block_rams

__all__ = ["Verifier"]

#: Inputs of a multiplexer that selects within one cycle.
CHOICE = 4


def folded_rows(parameters, columns):
    """Return the rows of a ring of whole keys whose lanes are folded into so many columns."""
    folds = ceil_log2(parameters.engine.lanes) - ceil_log2(columns)
    return parameters.ring_rows << folds


def fewest_columns(parameters):
    """Return the columns of whole keys that take the fewest block RAMs, the most if several do."""
    shape, _ = parameters.rule.verified_layouts(parameters)
    powers = [1 << n for n in reversed(range(ceil_log2(parameters.engine.lanes)))]
    return min(
        [parameters.engine.lanes, *(n for n in powers if fits(folded_rows(parameters, n)))],
        key=lambda columns: ring_block_rams(
            parameters, shape, rows=folded_rows(parameters, columns), lanes=columns
        ),
    )


class Verifier(wiring.Component):
    """Compare the key of a candidate lane with every probe of its pass, one after the other.

    The key of an equality is compared with the key of the probe, that of a band with its ranges.
    The whole keys are in a separate ring, which only the verifier reads, so candidates do not
    disturb the scan. It reads one key at a time. So lanes of few rows are folded: several of them
    stand one above the other in a column, where that takes fewer block RAMs. The probes are in a
    :class:`hdl.scan.ring.PassTable`. A lane without a match is dropped, unless it is the last
    of its pass or of a round. Such a lane that is no candidate takes one step.

    Latency: :attr:`latency` cycles from the last step of a lane to ``o``: those of the ring, 2 to
    select the column, 1 to compare, and 1 in the output queue, which takes up the lanes in flight
    when ``o`` stalls. Throughput: 1 probe per cycle, so a lane takes as many cycles as its group
    has probes.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.
    depth : int
        Number of lanes that the output queue can hold, a power of two.
    columns : int or None
        Columns that the lanes are folded into, a power of two, or as many as there are lanes; by
        default those that take the fewest block RAMs.

    Members
    -------
    store : In(1)
        Store ``key`` at ``place``, as in a :class:`KeyRing`.
    place, key : In
    passes : In(pass_reading(parameters))
        Read port of a :class:`hdl.scan.ring.PassTable` whose delay is :attr:`probe_delay`.
    i : In(stream.Signature(lane_matches_layout(parameters, 1)))
        Candidates.
    o : Out(stream.Signature(lane_matches_layout(parameters, probes)))
        Verified lanes.
    wrong : Out(1)
        A row read for a candidate holds a flipped bit; only with parity.
    """

    #: Cycles until the key of a lane is selected, less those that reading a probe takes.
    probe_delay = KeyRing.LATENCY + 2 - KeyColumn.LATENCY

    def __init__(self, parameters, *, depth=16, columns=None):
        self.parameters = parameters
        self.depth = depth
        self.columns = columns or fewest_columns(parameters)
        self.latency = KeyRing.LATENCY + 4
        #: Lanes that can still arrive after the queue reported room: those in the pipeline, and one
        #: that is taken before the registered ``room`` changes.
        self.in_flight = self.latency + 1
        if depth <= self.in_flight:
            raise ValueError(f"A queue of {depth} lanes cannot hold {self.in_flight} in flight")
        super().__init__(
            {
                "store": In(1),
                "place": In(pointer_layout(parameters)),
                "key": In(parameters.rule.verified_layouts(parameters)[0]),
                "passes": In(pass_reading(parameters)),
                "i": In(stream.Signature(lane_matches_layout(parameters, 1))),
                "o": Out(
                    stream.Signature(lane_matches_layout(parameters, parameters.engine.probes))
                ),
                **({"wrong": Out(1)} if parameters.engine.parity else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = KeyRing(
            self.parameters,
            self.key.shape(),
            rows=folded_rows(self.parameters, self.columns),
            lanes=self.columns,
        )
        room = Signal()
        stages = self.elaborate_steps(m, room & ~ring.written if ring.shared else room)
        *_, read, few, chosen, compared = stages
        if self.parameters.engine.parity:
            m.d.comb += [
                ring.checked.eq(stages[0]["step"] & stages[0]["candidate"]),
                self.wrong.eq(ring.wrong),
            ]
        m.d.comb += [
            ring.store.eq(self.store),
            Value.cast(ring.place).eq(
                Cat(self.column(self.place.lane), self.folded_row(self.place))
            ),
            ring.key.eq(self.key),
            ring.address.eq(self.folded_row(self.i.payload)),
        ]
        columns = [self.column(stage["lane"].lane) for stage in (read, few)]
        key = self.elaborate_choice(m, ring.keys, *columns)
        match = self.elaborate_comparison(m, key, chosen)
        m.d.comb += self.passes.ended.eq(
            compared["step"] & compared["final"] & compared["lane"].last
        )
        self.elaborate_output(m, compared, match, room)
        return m

    def elaborate_steps(self, m, room):
        """Step through the probes of the pass for each candidate; return the step in each stage."""
        lane, passes = self.i.payload, self.passes
        number = Signal.like(passes.number)
        step, final, candidate = Signal(), Signal(), Signal()
        row = passes.first[: len(lane.row)]
        m.d.comb += [
            step.eq(self.i.valid & room),
            # A group without probes has no candidates: its slots compare digests of earlier groups.
            candidate.eq(lane.matches & (passes.count != 0)),
            final.eq(~candidate | (number + 1 == passes.count)),
            self.i.ready.eq(room & final),
            passes.number.eq(number),
            passes.following.eq(step & final & lane.last),
        ]
        with m.If(step):
            m.d.sync += number.eq(Mux(final, 0, number + 1))
        # A row below the first row of its pass has the opposite wrap bit.
        wrap = passes.first[-1] ^ (lane.row < row)
        stages = [
            {
                "step": step,
                "final": final,
                "candidate": candidate,
                "number": number,
                "wrap": wrap,
                "lane": lane,
            }
        ]
        for cycle in range(1, self.latency):
            following = {}
            for name, value in stages[-1].items():
                shape = lane.shape() if name == "lane" else Value.cast(value).shape()
                following[name] = Signal(shape, name=f"{name}_{cycle}", reset_less=name != "step")
                m.d.sync += following[name].eq(value)
            stages.append(following)
        return stages

    def column(self, lane):
        """Return the column of a lane, its low bits: keys are still stored column by column."""
        return lane[: ceil_log2(self.columns)]

    def folded_row(self, place):
        """Return the row of the ring for a lane and its row: high bits of the lane above the row.

        A wrap bit stays on top.
        """
        bits = ceil_log2(self.parameters.ring_rows)
        return Cat(place.row[:bits], place.lane[ceil_log2(self.columns) :], place.row[bits:])

    def elaborate_choice(self, m, keys, first_column, second_column):
        """Return the key of a column: select within small sets of columns, then among the sets."""
        low = (CHOICE - 1).bit_length()
        width = len(Value.cast(self.key))
        few = []
        for n in range(0, len(keys), CHOICE):
            some = Cat(keys[column] for column in range(n, min(n + CHOICE, len(keys))))
            few.append(Signal(width, name=f"key_of_{n // CHOICE}", reset_less=True))
            m.d.sync += few[-1].eq(some.word_select(first_column[:low], width))
        key = Signal(width, reset_less=True)
        m.d.sync += key.eq(Cat(few).word_select(second_column[low:], width))
        return key

    def elaborate_comparison(self, m, key, step):
        """Return, a cycle later, whether the probe has this key and sees it."""
        probe = self.passes.probe
        place = Cat(step["lane"].lane, step["lane"].row, step["wrap"])
        # Signed distances in the ring: the key is at or after the tail, and before the head.
        tail, head = ((place - Cat(end.lane, end.row))[: len(place)] for end in (
            probe.span.tail, probe.span.head,
        ))  # fmt: skip
        now, later = self.parameters.rule.verify(m, self.parameters, key, probe.key)
        outcomes = [step["candidate"], ~tail[-1], head[-1], *now]
        holds = Signal(len(outcomes), reset_less=True)
        m.d.sync += holds.eq(Cat(outcomes))
        return reduce(and_, [holds.all(), *later])

    def elaborate_output(self, m, compared, match, room):
        """Collect the matches of a lane and queue the lane; report in time when room runs out."""
        probes = self.parameters.engine.probes
        layout = self.o.payload.shape()
        m.submodules.queue = queue = PointerQueue(layout, depth=self.depth, reserve=self.in_flight)
        found = Signal(probes, reset_less=True)  # by earlier steps of this lane
        matches = Signal(probes)
        output = Signal(layout)
        number, lane = compared["number"], compared["lane"]
        ends_round = lane.ends if self.parameters.engine.rounds else 0
        m.d.comb += [
            matches.eq(Mux(number == 0, 0, found) | (match << number)),
            output.matches.eq(matches),
            *(output[name].eq(lane[name]) for name in ("lane", "row", "last", "ending")),
            *(output[name].eq(lane[name]) for name in rounds_members(self.parameters, 1)),
            queue.last.eq(output),
            queue.add.eq(
                compared["step"] & compared["final"] & (lane.last | matches.any() | ends_round)
            ),
            self.o.valid.eq(queue.filled),
            self.o.payload.eq(queue.first),
            queue.take.eq(self.o.valid & self.o.ready),
            room.eq(queue.room),
        ]
        with m.If(compared["step"]):
            m.d.sync += found.eq(matches)
