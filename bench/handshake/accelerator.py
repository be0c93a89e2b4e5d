# SPDX-License-Identifier: Apache-2.0
"""Accelerators of handshake joins: a chain with its coordinator."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.accelerator import accelerator_ports
from hdl.counters import JoinCounting
from hdl.ingress.ingress import Ingress
from hdl.local_reset import reset_nearby, reset_tree_within
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.inputs import Control, InputKind
from hdl.words.operands import answers_mark, begins_window
from hdl.words.prepared import region_word
from hdl.words.results import faults_layout

from .chain import Chain
from .exits import FreeMergerTree, ResultsExit
from .layouts import LaneKind, lane_word
from .windows import SideWindow

__all__ = ["MOST", "ChainAccelerator", "Coordinator"]


#: Words that can be between the coordinator and the core that takes them, or more.
MOST = 15


def enter_lanes(m, coordinator, is_, sends, kind, restart):
    """Put a register at the entry of each lane; return whether each is ready, and whether idle.

    A lane is idle when the core where its words enter has taken all of them.

    Parameters
    ----------
    m : Module
        Module of the coordinator. The registers become its submodules ``lane_r`` and ``lane_s``.
    coordinator : Coordinator
    is_ : Value
        The input word at hand, with its flags.
    sends : list of two Signals
        A word enters the lane of R, and that of S.
    kind, restart : Signal
        What the word is.

    Returns
    -------
    ready, idle : lists of two Values
    """
    ready, idle = [], []
    for side, name in enumerate("rs"):
        shape = lane_word(coordinator.parameters)
        m.submodules[f"lane_{name}"] = lane = StreamRegister(shape, early=["kind"])
        connect(m, lane.o, flipped(coordinator.lanes[side]))
        under_way = Signal(range(MOST + 1), name=f"under_way_{name}")
        m.d.sync += under_way.eq(under_way + sends[side] - coordinator.taken[side])
        m.d.comb += [
            lane.i.valid.eq(sends[side]),
            lane.i.payload.kind.eq(kind),
            lane.i.payload.restart.eq(restart),
        ]
        fill_body(m, coordinator.parameters, is_, lane.i.payload)
        ready.append(lane.i.ready)
        idle.append(under_way == 0)
    return ready, idle


def fill_body(m, parameters, is_, lane):
    """Put the tuple at hand, or the bound, into a word of a lane."""
    body, tuple_ = is_.word.body, lane.body.tuple
    with m.If(~is_.control):
        m.d.comb += tuple_.key.eq(body.tuple.key)
        if "criterion" in tuple_.shape().members:
            m.d.comb += tuple_.criterion.eq(body.tuple.criterion)
    if "bound" in lane.body.shape().members:
        with m.If(is_.control):
            m.d.comb += lane.body.bound.value.eq(body.control.value)
            for index, key in enumerate(parameters.keys):
                for end, op in (("low", Control.BOUND_LOW), ("high", Control.BOUND_HIGH)):
                    m.d.comb += lane.body.bound.bounds[key.name][end].eq(
                        (body.control.index == index) & (body.control.op == op)
                    )


def number_tuples(m, parameters, adds, restart):
    """Say in each tuple how many of the other side came before it.

    Parameters
    ----------
    m : Module
        Module of the coordinator, after :func:`enter_lanes`.
    parameters : JoinParameters
        Of a low-latency handshake join, whose cores need to know.
    adds : list of two Signals
        A tuple of R enters its lane, or one of S does.
    restart : Signal
        Numbers begin at zero.
    """
    sent = [Signal(parameters.arrangement.ordinal_bits, name=f"sent_{name}") for name in "rs"]
    for side, count in enumerate(sent):
        with m.If(restart):
            m.d.sync += count.eq(0)
        with m.Elif(adds[side]):
            m.d.sync += count.eq(count + 1)
        lane = m.submodules[f"lane_{'rs'[side]}"]
        m.d.comb += [
            lane.i.payload.homeless.eq(1),
            lane.i.payload.before.eq(sent[1 - side]),
        ]


class Coordinator(wiring.Component):
    """Send tuples into the chain from both ends, and words that expire others with them.

    A tuple that leaves its window is expired in the lane of the other side, before the first tuple
    that may not meet it. So the order of the words in a lane says what the windows of its tuples
    are, and no core needs to know of sizes and times.

    In the low-latency handshake join a tuple is sent when the other lane's tuples before it have
    been taken by the core where they enter. So two tuples on their way always cross inside the
    chain.

    A control word waits until all results before it have been emitted: fences go through the chain
    in both lanes, and a mark comes back. Before that, windows are emptied, tuple by tuple: by
    WINDOW and LIFESPAN of their side, by CLEAR of both sides, and in the handshake join by every
    control word of both sides. There, tuples that have not met yet are still far from each other,
    and flow on only as others leave.

    Latency: 2 cycles from a tuple to its lane, if nothing has to leave before it. Throughput: a
    tuple in 2 cycles, and 2 more for each one that expires; in the low-latency handshake join
    :attr:`ALTERNATION` cycles more where the side changes.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(region_word(parameters)))
        As the ingress sends them.
    lanes : Out(stream.Signature(lane_word(parameters))).array(2)
        To where R enters, and S.
    taken : In(2)
        A word of either lane was taken there.
    settled : In(1)
        The mark of a fence has come back.
    marks : Out(stream.Signature(faults_layout(parameters)))
        Marks to be emitted.
    """

    #: Cycles that a tuple takes more if the one before it is of the other side. A word is taken two
    #: cycles after it was sent, and that is known another two cycles later.
    ALTERNATION = 2

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        lane = stream.Signature(lane_word(parameters))
        super().__init__(
            {
                "i": In(stream.Signature(region_word(parameters))),
                "lanes": Out(lane).array(2),
                "taken": In(2),
                "settled": In(1),
                "marks": Out(stream.Signature(faults_layout(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = flagged_register(m, "input", self.i, flags=self.word_flags)
        windows = [SideWindow(self.parameters) for _ in "rs"]
        m.submodules.window_r, m.submodules.window_s = windows
        sends = [Signal(name=f"send_{name}") for name in "rs"]
        kind, restart = Signal(LaneKind), Signal()
        ready, idle = enter_lanes(m, self, words.payload, sends, kind, restart)
        adds = [Signal(name=f"add_{name}") for name in "rs"]
        if not self.is_handshake:
            number_tuples(m, self.parameters, adds, restart)
        overflow = Signal(2)
        is_, faults = words.payload, self.marks.payload
        m.d.comb += [
            faults.overflow.eq(overflow),
            faults.disorder.eq(is_.word.disorder),
            faults.illegal.eq(is_.word.illegal),
        ]
        for side, window in enumerate(windows):
            m.d.comb += [
                window.time.eq(is_.word.body.tuple.timestamp),
                window.own.eq(is_.s if side else is_.r),
                window.add.eq(adds[side]),
                window.timed.eq(is_.timed),
                window.size.eq(is_.word.body.control.value),
            ]
        due, full = Signal(2), Signal()  # of the word at hand, once it has been looked at
        with m.FSM():
            with m.State("LOOK"):
                known = Cat(window.settled for window in windows).all()
                m.d.sync += [
                    due.eq(Cat(window.due for window in windows)),
                    full.eq(Mux(is_.s, windows[1].full, windows[0].full)),
                ]
                with m.If(words.valid & is_.control):
                    m.next = "EMPTY"
                with m.Elif(words.valid & known):
                    m.next = "SEND"
            with m.State("SEND"):
                self.elaborate_tuple(m, words, ready, idle, sends, kind, windows, adds, due, full)
                with m.If(full & ~due.any()):
                    m.d.sync += overflow.eq(overflow | Cat(is_.r, is_.s))
            self.elaborate_emptying(m, is_, ready, idle, sends, kind, windows)
            self.elaborate_fences(m, is_, ready, sends, kind, restart)
            with m.State("EXECUTE"):
                own = is_.begins & (self.marks.ready | ~is_.answers)
                m.d.comb += [
                    self.marks.valid.eq(is_.answers),
                    words.ready.eq(self.marks.ready | ~is_.answers),
                    *(window.begin.eq(own & is_.sides[n]) for n, window in enumerate(windows)),
                ]
                with m.If(words.ready):
                    m.next = "LOOK"
                with m.If(words.ready & is_.clear):
                    m.d.sync += overflow.eq(0)
        return reset_nearby(m, platform)

    @property
    def is_handshake(self):
        """Whether this is the handshake join, not the low-latency one."""
        return not self.parameters.arrangement.expedited

    def word_flags(self, words):
        """Return what the coordinator does with a word; anything while there is none."""
        word, control = words.payload, words.payload.body.control
        operation = control.op.as_value()
        is_control = word.kind == InputKind.CONTROL
        clear = operation == Control.CLEAR.value
        begins = begins_window(control)
        sides = Cat(control.index == 0, control.index == 1)
        emptied = (sides & begins.replicate(2)) | clear.replicate(2)
        return {
            "r": word.kind == InputKind.R,
            "s": word.kind == InputKind.S,
            "control": is_control,
            "clear": clear,
            "answers": answers_mark(control),
            "begins": begins,
            "timed": operation == Control.LIFESPAN.value,
            "bound": operation.matches(Control.BOUND_LOW, Control.BOUND_HIGH),
            "sides": sides,
            "emptied": Const(3, 2) if self.is_handshake else emptied,
        }

    def elaborate_tuple(self, m, words, ready, idle, sends, kind, windows, adds, due, full):
        """Send the tuple at hand, after one word for each that it expires; or drop it."""
        is_ = words.payload
        m.d.comb += kind.eq(Mux(due.any(), LaneKind.EXPIRE, LaneKind.TUPLE))
        with m.If(due[0]):
            self.expire(m, 0, ready, sends, windows)
            with m.If(ready[1]):
                m.next = "LOOK"
        with m.Elif(due[1]):
            self.expire(m, 1, ready, sends, windows)
            with m.If(ready[0]):
                m.next = "LOOK"
        with m.Else():
            for side, own in enumerate((is_.r, is_.s)):
                free = ready[side] if self.is_handshake else ready[side] & idle[1 - side]
                m.d.comb += [
                    sends[side].eq(own & free & ~full),
                    adds[side].eq(sends[side]),
                ]
            m.d.comb += words.ready.eq(Cat(adds).any() | full)
            with m.If(words.ready):
                m.next = "LOOK"

    def expire(self, m, side, ready, sends, windows):
        """Expire the oldest tuple of a side, if the other side's lane is ready."""
        lane = 1 - side
        m.d.comb += [sends[lane].eq(ready[lane]), windows[side].drop.eq(ready[lane])]

    def elaborate_emptying(self, m, is_, ready, idle, sends, kind, windows):
        """Expire all tuples of the windows that are to be empty, then wait for both lanes."""
        with m.State("EMPTY"):
            m.d.comb += kind.eq(LaneKind.EXPIRE)
            left = [is_.emptied[n] & ~window.empty for n, window in enumerate(windows)]
            for side, window in enumerate(windows):
                with m.If(left[side] & window.settled):
                    self.expire(m, side, ready, sends, windows)
            with m.If(~Cat(left).any() & Cat(idle).all()):
                m.next = "FENCE"

    def elaborate_fences(self, m, is_, ready, sends, kind, restart):
        """Send a fence through both lanes, and wait for its mark; CLEAR takes two of them.

        Numbers begin at zero behind the second one, when nothing is under way any more.
        """
        second = Signal()
        both = Cat(ready).all()
        with m.State("FENCE"):
            m.d.comb += [
                kind.eq(LaneKind.FENCE),
                restart.eq(second),
                *(send.eq(both) for send in sends),
            ]
            with m.If(both):
                m.next = "AWAIT"
        with m.State("AWAIT"):
            with m.If(self.settled):
                m.d.sync += second.eq(is_.clear & ~second)
                m.next = "EXECUTE"
                with m.If(is_.clear & ~second):
                    m.next = "FENCE"
                if self.is_handshake and self.parameters.bounded:
                    with m.Elif(is_.bound):
                        m.next = "BOUND"
        if self.is_handshake and self.parameters.bounded:
            with m.State("BOUND"):
                m.d.comb += [kind.eq(LaneKind.BOUND), sends[0].eq(ready[0])]
                with m.If(ready[0]):
                    m.next = "EXECUTE"


class ChainAccelerator(wiring.Component):
    """A handshake join, or a low-latency handshake join, with the ports of SplitJoin.

    The ingress is that of SplitJoin: the same legal words, order of time and prepared tuples. A
    :class:`Coordinator` sends tuples into the chain from both ends, and expires them. Results come
    in no order and without stars; a mark follows all results of the tuples before it.

    Latency: see ``docs/decisions/0017-baselines.md``. Throughput: of alternating tuples, one of
    each side per ``max(rows, 1)`` cycles, ``rows`` those of the fullest segment, and what the
    coordinator takes if that is more.

    Parameters
    ----------
    parameters : JoinParameters
        Of a chain.

    Members
    -------
    See :class:`hdl.accelerator.Accelerator`.
    """

    def __init__(self, parameters):
        if parameters.arrangement.has_stars:
            raise ValueError(f"Architecture {parameters.architecture!r} is no chain of cores")
        self.parameters = parameters
        self.ingress = Ingress(parameters)
        self.coordinator = Coordinator(parameters)
        self.resets = reset_tree_within(self.ingress.latency, cores=parameters.cores)
        self.chain = Chain(parameters)
        self.activity = self.chain.activity
        self.gathering = FreeMergerTree(parameters)
        self.exit = ResultsExit(parameters)
        super().__init__(accelerator_ports(parameters))

    def visiting_latency(self, hops, row=0):
        """Return the cycles from a tuple to its match with one that is kept ``hops`` cores on.

        That is so in the low-latency handshake join while it is idle. In the handshake join a tuple
        is sent on only when others come: there it is half of a window's tuples.

        Parameters
        ----------
        hops : int
            Cores that the tuple passes before.
        row : int
            Rows that are compared before.
        """
        link = 2
        return (
            self.ingress.latency
            + self.coordinator.latency
            + link * (1 + hops)
            + self.chain.latency
            + row
            + self.gathering.latency
            + self.exit.latency
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.coordinator = coordinator = self.coordinator
        m.submodules.chain = chain = self.chain
        m.submodules.gathering = gathering = self.gathering
        m.submodules.exit = exit_ = self.exit
        m.submodules.resets = resets = self.resets
        counting = JoinCounting(self.parameters)
        counting.place(m)
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, coordinator.i)
        connect(m, coordinator.marks, exit_.marks)
        connect(m, gathering.o, exit_.i)
        connect(m, exit_.o, flipped(self.o))
        m.d.comb += [
            ingress.room.eq(1),  # there are no stars that would have to be remembered
            coordinator.taken.eq(chain.taken),
            coordinator.settled.eq(exit_.settled),
        ]
        for side in range(2):
            connect(m, coordinator.lanes[side], chain.lanes[side])
        for n in range(2 * self.parameters.cores):
            connect(m, chain.results[n], gathering.i[n])
        for n in range(self.parameters.cores):
            m.d.comb += [chain.resets[n].eq(resets.o[n]), gathering.resets[n].eq(resets.o[n])]
        counting.count(m, self)
        return m
