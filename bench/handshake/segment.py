# SPDX-License-Identifier: Apache-2.0
"""What a core keeps of one side's window, and the passes of the other side's tuples over it."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.ingress.preparation import ProbePreparation, unsigned_key
from hdl.memory.columns import KeyColumn
from hdl.predicates.rule import Comparator
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import delayed
from hdl.words.inputs import InputKind, bounds_layout, control_layout
from hdl.words.prepared import activity_layout, criterion_layout, stored_layout

from .layouts import match_layout, pass_layout, place_shape

__all__ = ["PassPreparation", "PassRows", "Segment"]


class PassPreparation(wiring.Component):
    """Prepare the criterion of a tuple, and hand it to a segment together with its pass.

    A band takes the stages that it takes SplitJoin once, at the root; here every core has them for
    each side, as a ring holds keys only. For other comparators the key is the criterion.

    Latency: :attr:`latency` cycles. Throughput: 1 pass per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    side : int
        Of the tuples: 0 for R, 1 for S.

    Members
    -------
    push : In(1)
    pass_, key : In
    bound : In(1)
        Set those of ``bounds`` that are one to ``value``.
    bounds, value : In
    pushed : Out(1)
    prepared, criterion : Out
    """

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self._is_band = bool(parameters.bounded)
        self._preparation = ProbePreparation(parameters) if self._is_band else None
        self.latency = self._preparation.latency if self._is_band else 1
        super().__init__(
            {
                "push": In(1),
                "pass_": In(pass_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "bound": In(1),
                "bounds": In(bounds_layout(parameters)),
                "value": In(control_layout(parameters)["value"].shape),
                "pushed": Out(1),
                "prepared": Out(pass_layout(parameters)),
                "criterion": Out(criterion_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        values = {"push": self.push, "pass": Value.cast(self.pass_)}
        if not self._is_band:
            values["key"] = Value.cast(self.key)
        for stage in range(self.latency):
            values = delayed(m, values, f"stage_{stage}", flags=("push",))
        m.d.comb += [
            self.pushed.eq(values["push"]),
            Value.cast(self.prepared).eq(values["pass"]),
        ]
        if self._is_band:
            self.elaborate_preparation(m)
        else:
            m.d.comb += Value.cast(self.criterion).eq(values["key"])
        return m

    def elaborate_preparation(self, m):
        """Send the key, or a bound, through the stages of a probe."""
        m.submodules.preparation = preparation = self._preparation
        scheduled = preparation.i.payload
        word = scheduled.word
        m.d.comb += [
            preparation.i.valid.eq(self.push | self.bound),
            self.criterion.eq(preparation.o.payload.body.tuple.criterion),
        ]
        with m.If(self.bound):
            m.d.comb += [
                word.kind.eq(InputKind.CONTROL),
                word.body.control.value.eq(self.value),
                scheduled.bounds.eq(self.bounds),
            ]
        with m.Else():
            m.d.comb += word.kind.eq(InputKind.S if self.side else InputKind.R)
            for field in self.parameters.keys:
                # A key is stored without its sign; taken away twice, it is there again.
                m.d.comb += Value.cast(word.body.tuple.key[field.name]).eq(
                    unsigned_key(field, self.key[field.name])
                )


class PassRows(wiring.Component):
    """Count the rows of each pass, then the tuples that it meets on their way.

    A pass is taken from the queue while the last row of the one before it has its turn, so passes
    follow each other without an idle cycle.

    Latency: 1 cycle from ``filled`` to the first row's turn. Throughput: 1 row per cycle with
    ``room``.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    stride, limited, meets
        See :class:`Segment`.

    Members
    -------
    filled : In(1)
        A pass waits.
    pass_ : In
    take : Out(1)
        It begins in the next cycle.
    room : In(1)
        A row may be read.
    running, step, begin : Out(1)
        A pass is under way; its row has its turn; it is the first one.
    row : Out
    real : Out(1)
        There is a tuple in it: a pass over nothing has one row without any.
    mark : Out(1)
        The row stands for a mark.
    tag : Out
        Number of the tuple in the row.
    limit : Out
        Only if ``limited``.
    meeting : Out(1)
        It is none of the ring but one that is met; in the cycle of ``step``, with ``meets`` only.
    tail, met_tail : In
        What a pass of a later tuple needs first.
    kept, met_kept : Out
        What is needed first, out of a register.
    """

    def __init__(self, parameters, *, stride=1, limited=False, meets=0):
        self.parameters = parameters
        self.stride = stride
        self.limited = limited
        self.meets = meets
        self.latency = 1
        tag, place = unsigned(parameters.arrangement.ordinal_bits), place_shape(parameters)
        super().__init__(
            {
                "filled": In(1),
                "pass_": In(pass_layout(parameters, limited=limited, meets=meets)),
                "take": Out(1),
                "room": In(1),
                "running": Out(1),
                "step": Out(1),
                "begin": Out(1),
                "row": Out(place),
                "real": Out(1),
                "mark": Out(1),
                "tag": Out(tag),
                "tail": In(place),
                "kept": Out(place),
                **({"limit": Out(tag)} if limited else {}),
                **({"meeting": Out(1), "met_tail": In(tag), "met_kept": Out(tag)} if meets else {}),
            }
        )

    def of_row(self):
        """Return what belongs to the row whose turn it is, by name."""
        names = ["real", "mark", "tag"]
        names += ["limit"] * self.limited + ["meeting"] * (self.meets > 0)
        return {name: getattr(self, name) for name in names}

    def elaborate(self, platform):
        m = Module()
        # Of the pass under way; it counts down the rows that are left, this one among them.
        now = Signal(self.pass_.shape(), reset_less=True)
        fresh = Signal(reset_less=True)
        started = Signal(place_shape(self.parameters), reset_less=True)
        ring = now.rows.any()
        last = ~now.rows[1:].any()
        if self.meets:
            last &= ~now.met[1:].any() & ~(now.rows[0] & now.met[0])
        m.d.comb += [
            self.step.eq(self.running & self.room),
            self.begin.eq(self.step & fresh),
            self.take.eq(self.filled & (~self.running | (self.step & last))),
            self.row.eq(now.first),
            self.real.eq(ring | now.met.any() if self.meets else ring),
            self.mark.eq(now.mark),
            self.tag.eq(now.oldest),
        ]
        if self.limited:
            m.d.comb += self.limit.eq(now.limit)
        with m.If(self.step):
            m.d.sync += [fresh.eq(0), now.first.eq(now.first + 1)]
            self.elaborate_step(m, now, ring)
            with m.If(last):
                m.d.sync += self.running.eq(0)
        with m.If(self.take):
            m.d.sync += [self.running.eq(1), fresh.eq(1), now.eq(self.pass_)]
            m.d.sync += started.eq(self.pass_.first)
            if self.meets:  # a pass that has no rows begins with those that it meets
                with m.If(~self.pass_.rows.any()):
                    m.d.sync += now.oldest.eq(self.pass_.met_first)
        self.elaborate_kept(m, started)
        return m

    def elaborate_step(self, m, now, ring):
        """Go on to the next row, or to the next tuple that is met."""
        if not self.meets:
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            return
        m.d.comb += self.meeting.eq(~ring)
        with m.If(ring):
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            with m.If(now.rows == 1):
                m.d.sync += now.oldest.eq(now.met_first)
        with m.Else():
            m.d.sync += [now.met.eq(now.met - 1), now.oldest.eq(now.oldest + 1)]

    def elaborate_kept(self, m, started):
        """Say what passes that are under way or wait need first, or a later one will."""
        waiting = Mux(self.filled, self.pass_.first, self.tail)
        m.d.sync += self.kept.eq(Mux(self.running, started, waiting))
        if self.meets:
            met = Signal.like(self.met_tail, name="met_started", reset_less=True)
            with m.If(self.take):
                m.d.sync += met.eq(self.pass_.met_first)
            waiting = Mux(self.filled, self.pass_.met_first, self.met_tail)
            m.d.sync += self.met_kept.eq(Mux(self.running, met, waiting))


def compare_row(m, segment, stages, key, passing):
    """Compare the row that was read; return what belongs to it a cycle later, and its match.

    Parameters
    ----------
    m : Module
        Module of the segment. The comparator becomes its submodule ``comparator``.
    segment : Segment
    stages : list of dict of str to Value
        What belongs to the row in each cycle from its turn on, the last one beside ``key``.
    key : Value
        What was read.
    passing : dict of str to Signal
        What belongs to the tuple that passes.

    Returns
    -------
    dict of str to Signal, Value
    """
    row = stages[-1]
    counts = row["real"]
    if segment.limited:
        inside = Signal(reset_less=True)
        m.d.sync += inside.eq((stages[1]["tag"] - stages[1]["limit"])[: len(segment.pass_.tag)][-1])
        counts = row["real"] & inside
    row = {**row, "counts": counts, "passing": passing["tag"]}
    criterion = passing["criterion"]
    if segment.meets:
        row, key, criterion = meet(m, segment, row, key, passing, inside)
    m.submodules.comparator = comparator = Comparator(segment.parameters, probe_side=segment.side)
    m.d.comb += Value.cast(comparator.key).eq(key)
    offset = 0
    for name, field in criterion_layout(segment.parameters):
        m.d.comb += Value.cast(getattr(comparator.criterion, name)).eq(
            criterion[offset : offset + field.width]
        )
        offset += field.width
    compared = {name: row[name] for name in ("step", "mark", "counts", "tag", "passing")}
    return delayed(m, compared, "compared", flags=("step",)), comparator.match


def meet(m, segment, row, key, passing, inside):
    """Put the key of a tuple that is met in the place of what was read from the ring.

    It counts if nobody else compares the two: if the one that came first has not reached its core
    when the other one passes there. One that came later also has to be in time.
    """
    tag = segment.pass_.tag
    m.d.comb += segment.met_place.eq(row["tag"])
    late = (passing["tag"] - segment.met_oldest)[: len(tag)][-1]  # the one that passes expired
    counts = Mux(inside, segment.met_homeless, passing["homeless"] & ~late)
    later = {
        **{name: row[name] for name in ("step", "mark", "tag", "passing")},
        "counts": row["real"] & Mux(row["meeting"], counts, inside),
        "key": Mux(row["meeting"], Value.cast(segment.met_key), key),
        "criterion": passing["criterion"],
    }
    later = delayed(m, later, "met", flags=("step",))
    return later, later["key"], later["criterion"]


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
