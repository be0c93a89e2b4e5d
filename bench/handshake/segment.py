# SPDX-License-Identifier: Apache-2.0
"""What a core keeps of one side's window, and the passes of the other side's tuples over it."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.columns import KeyColumn
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import delayed
from hdl.words.prepared import activity_layout, criterion_layout, stored_layout

from .layouts import match_layout, pass_layout, place_shape
from .passes import PassRows, compare_row

__all__ = ["Segment"]


class Segment(wiring.Component):
    """A ring of keys, and one comparator that passes compare them with, one row per cycle.

    It is the region of a chain's core. Passes wait in a queue and are made in order, each over the
    rows that it names, whatever is stored or leaves meanwhile; ``kept`` tells from which row on the
    ring is needed. A pass over nothing takes a cycle. Matches cannot be refused; what stops a pass
    is that no row is read unless there is room for the matches under way.

    With ``meets`` a pass goes on over tuples that are on their way through the core; these are in
    registers of the core, so keys pass a register more.

    Latency: :attr:`latency` cycles from a row's turn to its match, and 2 from ``push`` to the first
    row's turn. Throughput: one comparison per cycle; a pass of n rows takes max(1, n) cycles, and
    one more for each ``fetch``.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    side : int
        Side of the tuples that pass: 0 for R, 1 for S; matters to a custom predicate only.
    stride : int
        Distance of the numbers of tuples in neighbouring rows.
    limited : bool
        Whether passes have a limit.
    meets : int
        Bits of the number of tuples that a pass meets at the most; zero if it meets none.
    reserve : int
        Passes that may still come when there is no ``room``.

    Members
    -------
    store : In(1)
        Keep ``key`` at row ``place``; out of registers. It can be read from the next cycle on.
    place, key : In
    push : In(1)
        Make ``pass_``, with ``criterion``.
    pass_, criterion : In
    room : Out(1)
        Out of a register.
    tail : In(place_shape(parameters))
        First row that passes of later tuples may need.
    kept : Out(place_shape(parameters))
        First row that is needed; some cycles behind ``tail``, which may have moved five rows.
    fetch : In(1)
        The memory is read at ``fetch_place`` instead of going on with a pass.
    fetch_place : In
    fetched : Out
        What was there two cycles ago.
    results : Out(stream.Signature(match_layout(parameters)))
    activity : Out(activity_layout(parameters))

    With ``meets``:

    met_tail : In
        First tuple that passes of later tuples may meet.
    met_kept : Out
        First one that is needed.
    met_place : Out(meets)
        The lowest bits of the number of a tuple that is met.
    met_key, met_homeless, met_oldest : In
        Its key, whether its core has not been reached yet, and how many tuples of the side that
        passes had expired when it came.
    """

    def __init__(self, parameters, *, side, stride=1, limited=False, meets=0, reserve=4):
        self.parameters = parameters
        self.side = side
        self.meets = meets
        self.limited = limited
        self.reserve = reserve
        self._rows = PassRows(parameters, stride=stride, limited=limited, meets=meets)
        #: Passes that can wait, and as many as may still come.
        self.depth = 8 if reserve <= 4 else 16
        self.latency = KeyColumn.LATENCY + 1 + (meets > 0)
        tag, place = unsigned(parameters.arrangement.ordinal_bits), place_shape(parameters)
        key = stored_layout(parameters)
        met = {
            "met_tail": In(tag),
            "met_kept": Out(tag),
            "met_place": Out(meets),
            "met_key": In(key),
            "met_homeless": In(1),
            "met_oldest": In(tag),
        }
        super().__init__(
            {
                "store": In(1),
                "place": In(place),
                "key": In(key),
                "push": In(1),
                "pass_": In(pass_layout(parameters, limited=limited, meets=meets)),
                "criterion": In(criterion_layout(parameters)),
                "room": Out(1, init=1),
                "tail": In(place),
                "kept": Out(place),
                "fetch": In(1),
                "fetch_place": In(place),
                "fetched": Out(key),
                "results": Out(stream.Signature(match_layout(parameters))),
                "activity": Out(activity_layout(parameters)),
                **(met if meets else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.passes = passes = PointerQueue(
            self.pass_.shape(), depth=self.depth, reserve=self.reserve
        )
        m.submodules.rows = rows = self._rows
        m.d.comb += [
            passes.add.eq(self.push),
            passes.last.eq(self.pass_),
            passes.take.eq(rows.take),
            rows.filled.eq(passes.filled),
            rows.pass_.eq(passes.first),
            rows.tail.eq(self.tail),
            self.kept.eq(rows.kept),
            self.room.eq(passes.room),
        ]
        if self.meets:
            m.d.comb += [rows.met_tail.eq(self.met_tail), self.met_kept.eq(rows.met_kept)]
        key = self.elaborate_ring(m, rows)
        row = {"step": rows.step, "begin": rows.begin, **rows.of_row()}
        stages = [row]
        for cycle in range(KeyColumn.LATENCY):
            stages.append(delayed(m, stages[-1], f"row_{cycle + 1}", flags=("step", "begin")))
        passing = self.elaborate_passing(m, stages[1]["begin"])
        self.elaborate_matches(m, *compare_row(m, self, stages, key, passing))
        return m

    def elaborate_ring(self, m, rows):
        """Store keys, and read one a cycle; return the one that was read two cycles ago."""
        width = len(Value.cast(self.key))
        m.submodules.ring = ring = KeyColumn(width=width, depth=self.parameters.ring_rows)
        m.d.comb += [
            ring.write.eq(self.store),
            ring.place.eq(self.place),
            ring.row.eq(Value.cast(self.key)),
            ring.address.eq(Mux(self.fetch, self.fetch_place, rows.row)),
            Value.cast(self.fetched).eq(ring.data),
        ]
        return ring.data

    def elaborate_passing(self, m, begin):
        """Hold what a pass compares with beside the keys that have been read.

        It waits in a queue of its own, whose first element is that of the pass whose first row was
        read a cycle ago.
        """
        waiting = {"criterion": Value.cast(self.criterion), "tag": self.pass_.tag}
        if self.meets:
            waiting["homeless"] = self.pass_.homeless
        m.submodules.tuples = tuples = PointerQueue(
            sum(len(value) for value in waiting.values()), depth=self.depth
        )
        held = {
            name: Signal(len(value), name=f"held_{name}", reset_less=True)
            for name, value in waiting.items()
        }
        m.d.comb += [
            tuples.add.eq(self.push),
            tuples.last.eq(Cat(waiting.values())),
            tuples.take.eq(begin),
        ]
        with m.If(begin):
            m.d.sync += Cat(held.values()).eq(tuples.first)
        return held

    def elaborate_matches(self, m, compared, match):
        """Queue what a row has come to, and let it out."""
        shape = match_layout(self.parameters)
        in_flight = self.latency + 2
        m.submodules.matches = matches = PointerQueue(shape, depth=16, reserve=in_flight)
        m.d.comb += [
            self._rows.room.eq(matches.room & ~self.fetch),
            matches.add.eq(compared["step"] & (compared["mark"] | (compared["counts"] & match))),
            matches.last.mark.eq(compared["mark"]),
            matches.last.stored.eq(compared["tag"]),
            matches.last.passing.eq(compared["passing"]),
            matches.take.eq(self.results.valid & self.results.ready),
            self.results.valid.eq(matches.filled),
            self.results.payload.eq(matches.first),
        ]
        m.d.sync += [
            self.activity.comparisons.eq(compared["step"] & compared["counts"]),
            self.activity.busy.eq(self._rows.step & self._rows.real),
            self.activity.stalled.eq(self._rows.running & ~matches.room),
        ]
