# SPDX-License-Identifier: Apache-2.0
"""Gates of cores: masks, deadlines, answers for a core that has failed, parity."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.local_reset import STAGES, reset_nearby
from hdl.streams.queues import PointerQueue
from hdl.words.inputs import Control, InputKind
from hdl.words.operands import answers_mark
from hdl.words.prepared import region_word
from hdl.words.results import ResultKind, node_result

__all__ = ["CoreGate", "DeadlineWatch", "OwedStops", "ParityWatch", "owed_layout"]


class DeadlineWatch(wiring.Component):
    """Watchdog: tell when one of several conditions has held for too long without a break.

    One counter serves all conditions. It ticks every :attr:`period` cycles, and a condition that
    held in every cycle from one tick to the next is reported. So a condition that holds for fewer
    than :attr:`period` cycles is never reported, and one that holds for :attr:`limit` cycles always
    is.

    Latency: 1 cycle from the tick to ``expired``. Throughput: every condition is watched in every
    cycle.

    Parameters
    ----------
    cycles : int
        Number of cycles that a condition may hold, at least one.
    conditions : int
        Number of conditions, at least one.

    Attributes
    ----------
    period : int
        Number of cycles from tick to tick: ``cycles``, rounded up to a power of two.
    limit : int
        Number of cycles after which a condition is reported at the latest, including the latency.

    Members
    -------
    holds : In(conditions)
        Which conditions hold.
    expired : Out(1)
        A condition has held for too long; for one cycle, from a register.
    """

    def __init__(self, cycles, *, conditions):
        for name, value in (("cycles", cycles), ("conditions", conditions)):
            if value < 1:
                raise ValueError(f"Number of {name} must be at least one, not {value!r}")
        self.cycles = cycles
        self.conditions = conditions
        self.latency = 1
        self.period = 1 << ceil_log2(cycles)
        self.limit = 2 * self.period + self.latency
        super().__init__({"holds": In(conditions), "expired": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(range(self.period))
        tick = Signal()
        # Conditions that have held in every cycle since the last tick.
        lasting = Signal(self.conditions)
        still = lasting & self.holds
        m.d.comb += tick.eq(count == self.period - 1)
        m.d.sync += [
            count.eq(count + 1),
            lasting.eq(Mux(tick, self.holds, still)),
            self.expired.eq(tick & still.any()),
        ]
        return m


def owed_layout(parameters):
    """Return the layout of what a region owes for a word: a star, a mark, or a star and a mark.

    ``star``, ``mark``: what is owed, in this order.
    ``disorder``, ``illegal``, ``free``: what the star and the mark report
      (:func:`hdl.words.results.punctuation_layout`).
    ``excused``: the core was masked by a word before this one, so its results are not missed.
    ``inner``, with rounds: the mark says that results come in rounds from there on.
    """
    inner = ["inner"] * parameters.engine.rounds
    names = ("star", "mark", "disorder", "illegal", "free", "excused", *inner)
    return data.StructLayout(dict.fromkeys(names, 1))


class OwedStops(wiring.Component):
    """Pass on the results of one region, or answer in its place.

    A *stop* is a star or a mark. The star of a round is none: it passes as a pair does, and nothing
    comes in its place. The component keeps the stops that the region owes for the words offered to
    it, in order. While the region works, its results pass unchanged. After ``failed``, nothing of
    the region passes any more, and the stops that it still owes are sent from here, without pairs.
    Each of them has the fault ``failed``, unless it is ``excused``. After ``masked``, the region is
    cut off in the same way as soon as it owes only what is excused. So the merger behind gets every
    stop exactly once, whenever the region fails.

    A result that was offered is not withdrawn: the region is cut off after its transfer.

    A stop that the region shows but does not owe is not passed on. It raises ``wrong``.

    Latency: 0 cycles from ``i`` to ``o``, and 1 cycle from ``add`` to a stop that is sent from
    here. Throughput: 1 result per cycle, and 1 owed entry per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    add : In(1)
        The word at hand is offered to the region for the first time, which then owes ``stop``; only
        while ``room``.
    stop : In(owed_layout(parameters))
    room : Out(1)
        There is room for an entry; from a register.
    failed : In(1)
        The core has failed.
    parity : In(2)
        The sides of whose tuples the core read a flipped bit, if that is why it has failed; only
        with parity.
    masked : In(1)
        The core gets no word that comes in this cycle or later; their entries are ``excused``.
    restore : In(1)
        The core has been reset, and its results pass again. Only while nothing is owed; ``failed``
        and ``masked`` are low from the next cycle on.
    i : In(stream.Signature(node_result(parameters, 0)))
        Results of the region.
    o : Out(stream.Signature(node_result(parameters, 0)))
    owes : Out(1)
        A stop is owed.
    late : Out(1)
        The region owes a stop and shows nothing.
    wrong : Out(1)
        The region shows a stop that it does not owe.
    blocked : Out(1)
        A result waits to be taken.
    """

    #: Words whose stops may be owed. A region has fewer of them under way.
    DEPTH = 32

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        result = stream.Signature(node_result(parameters, 0))
        flags = dict.fromkeys(("room", "owes", "late", "wrong", "blocked"), Out(1))
        super().__init__(
            {
                "add": In(1),
                "stop": In(owed_layout(parameters)),
                "failed": In(1),
                **({"parity": In(2)} if parameters.engine.parity else {}),
                "masked": In(1),
                "restore": In(1),
                "i": In(result),
                "o": Out(result),
                **flags,
            }
        )

    def elaborate(self, platform):
        m = Module()
        owed = owed_layout(self.parameters)
        m.submodules.queue = queue = PointerQueue(owed, depth=self.DEPTH, reserve=1)
        first = queue.first
        standing = Signal()  # the region is cut off
        starred = Signal()  # the star of the first entry has been sent
        is_mark = starred | ~first.star  # what is owed next
        answers = Signal()  # the next stop is sent from here
        shows_stop = self.i.payload.kind != ResultKind.PAIR
        if self.parameters.engine.rounds:
            # The flag of a mark says something else.
            is_star = self.i.payload.kind == ResultKind.STAR
            shows_stop &= ~(is_star & self.i.payload.body.punctuation.inner)
        agrees = ~shows_stop | (
            queue.filled & ((self.i.payload.kind == ResultKind.MARK) == is_mark)
        )
        passes = ~standing & agrees
        m.d.comb += [
            queue.add.eq(self.add),
            queue.last.eq(self.stop),
            self.room.eq(queue.room),
            answers.eq(queue.filled & standing),
            self.o.valid.eq((self.i.valid & passes) | answers),
            self.i.ready.eq(standing | (self.o.ready & passes)),
            self.owes.eq(queue.filled),
            self.late.eq(queue.filled & ~standing & ~self.i.valid),
            self.wrong.eq(self.i.valid & ~agrees & ~standing),
            self.blocked.eq(self.o.valid & ~self.o.ready),
        ]
        self.elaborate_payload(m, first, is_mark, answers)
        stops = self.o.valid & self.o.ready & (answers | shows_stop)
        m.d.comb += queue.take.eq(stops & (is_mark | ~first.mark))
        with m.If(stops):
            m.d.sync += starred.eq(~queue.take)
        leaves = self.failed | (self.masked & (~queue.filled | first.excused))
        m.d.sync += standing.eq(~self.restore & (standing | (leaves & ~self.blocked)))
        return m

    def elaborate_payload(self, m, first, is_mark, answers):
        """Send the stop that is owed next, or what the region shows."""
        own = Signal(self.o.payload.shape(), name="own")
        m.d.comb += [
            own.kind.eq(Mux(is_mark, ResultKind.MARK, ResultKind.STAR)),
            own.body.punctuation.failed.eq(~first.excused),
            *(
                own.body.punctuation[name].eq(first[name])
                for name in ("disorder", "illegal", "free")
            ),
            *(
                [own.body.punctuation.inner.eq(is_mark & first.inner)]
                if self.parameters.engine.rounds
                else []
            ),
            *self.cause_of(own, first),
            Value.cast(self.o.payload).eq(
                Mux(answers, Value.cast(own), Value.cast(self.i.payload))
            ),
        ]

    def cause_of(self, own, first):
        """Return the assignments that tell why results are missing."""
        if not self.parameters.engine.parity:
            return []
        cause = self.parity & (~first.excused).replicate(2)
        return [own.body.punctuation.failed_parity.eq(cause)]


class ParityWatch(wiring.Component):
    """Tell the gate of a core that a bit has flipped, and keep why the core has failed.

    Latency: 1 cycle from ``wrong`` to ``told``, and from there to ``cause`` and ``fails``.
    Throughput: both sides in every cycle.

    Members
    -------
    wrong : In(2)
        The core has read a flipped bit of its tuples of R (bit 0), of S (bit 1).
    otherwise : In(1)
        The core has just failed for another reason.
    failed : In(1)
        The core has failed, from the cycle after ``told`` or ``otherwise`` on.
    restore : In(1)
        The core works again from the next cycle on.
    told : Out(1)
        A flipped bit was read; from a register.
    cause : Out(2)
        Sides that were ``wrong`` when the core failed; zero if it failed for another reason.
    fails : Out(1)
        The core has just failed; for one cycle, from a register.
    """

    def __init__(self):
        self.latency = 1
        flags = {name: In(1) for name in ("otherwise", "failed", "restore")}
        super().__init__(
            {"wrong": In(2), **flags, "told": Out(1), "cause": Out(2), "fails": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        sides = Signal(2)
        m.d.comb += self.told.eq(sides.any())
        m.d.sync += [
            sides.eq(self.wrong),
            self.fails.eq((self.told | self.otherwise) & ~self.failed & ~self.restore),
        ]
        with m.If(~self.failed):
            m.d.sync += self.cause.eq(sides)
        return m


class CoreGate(wiring.Component):
    """Stand between the trees and one core, so that the core can fail without stopping the others.

    While the core works, words and results pass unchanged. A core that is *masked* by the word MASK
    gets no word after it. It still answers the words before, and the gate answers all later ones:
    with the stars and marks that an empty core would send, and no pairs. So neither tree ever waits
    for the core, and every group is answered exactly once.

    The core has *failed* if it owes a star or mark and shows no result for ``failure_cycles``, if
    it refuses a word for as long while none of its results waits to be taken, or if it shows a star
    or mark that it does not owe. With parity, it has also failed if it read a flipped bit: the gate
    closes before a result that depends on that bit can reach it. From then on it gets no words, and
    the gate also answers for words that the core got before. Such answers have the fault
    ``failed``, up to the word MASK of this core.

    UNMASK waits until everything owed is answered, resets the core, and lets words pass again. It
    does nothing to a core that is neither masked nor failed. Afterwards the core is as after reset,
    so a configuration must follow.

    Latency: 0 cycles, for words and for results. Throughput: 1 word and 1 result of each side per
    cycle. UNMASK takes :attr:`revival` cycles after the last answer. A failure is noticed
    :attr:`limit` cycles after the last sign of life at the latest.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; ``failure_cycles`` is not zero.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    words : In(stream.Signature(region_word(parameters)))
        Words from the distribution tree.
    core_words : Out(stream.Signature(region_word(parameters)))
        Words to the core. A word that a failed core has not taken is withdrawn.
    core_results : In(stream.Signature(node_result(parameters, 0))).array(2)
        Results of the core.
    results : Out(stream.Signature(node_result(parameters, 0))).array(2)
        Results to the mergers.
    core_reset : Out(1)
        Resets the core.
    failed : Out(1)
        The core has failed, and is not masked by a word; from a register.
    wrong : In(2)
        The core has read a flipped bit of its tuples of R (bit 0), of S (bit 1); only with parity.
    fails : Out(1)
        The core has just failed; for one cycle, from a register, only with parity.
    reset : In(1)
        Resets the gate.
    """

    #: Cycles of reset that revive a core, and cycles until reset has left all of its registers.
    RESET_CYCLES, LEAVING_CYCLES = 16, 16

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        self._watch = DeadlineWatch(parameters.engine.gates.failure_cycles, conditions=3)
        self.limit = self._watch.limit + 1
        self.revival = self.RESET_CYCLES + self.LEAVING_CYCLES + 1
        words = stream.Signature(region_word(parameters))
        results = stream.Signature(node_result(parameters, 0))
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(words),
                "core_words": Out(words),
                "core_results": In(results).array(2),
                "results": Out(results).array(2),
                "core_reset": Out(1),
                "failed": Out(1),
                **({"wrong": In(2), "fails": Out(1)} if parameters.engine.parity else {}),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        assert self.LEAVING_CYCLES > STAGES
        m = Module()
        m.submodules.watch = watch = self._watch
        sides = [OwedStops(self.parameters) for _ in range(2)]
        failed, masked = Signal(), Signal()
        reviving, restore = Signal(), Signal()  # UNMASK is being executed; its last cycle
        for n, (side, name) in enumerate(zip(sides, ("left", "right"), strict=True)):
            m.submodules[name] = side
            connect(m, flipped(self.core_results[n]), side.i)
            connect(m, side.o, flipped(self.results[n]))
            m.d.comb += [
                side.failed.eq(failed),
                side.masked.eq(masked),
                side.restore.eq(restore),
            ]
        self.elaborate_words(m, sides, failed | masked, reviving, masked)
        refuses = self.core_words.valid & ~self.core_words.ready
        m.d.comb += [
            watch.holds.eq(
                Cat(
                    *(side.late for side in sides),
                    refuses & ~sides[0].blocked & ~sides[1].blocked,
                )
            ),
            self.failed.eq(failed & ~masked),
        ]
        wrong = sides[0].wrong | sides[1].wrong
        if self.parameters.engine.parity:
            wrong |= self.elaborate_parity(m, sides, failed, restore, watch.expired | wrong)
        with m.If(restore):
            m.d.sync += failed.eq(0)
        with m.Elif(watch.expired | wrong):
            m.d.sync += failed.eq(1)
        owes = sides[0].owes | sides[1].owes
        self.elaborate_orders(m, failed, masked, reviving, restore, owes)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_parity(self, m, sides, failed, restore, otherwise):
        """Keep why the core has failed; return whether a flipped bit was told in the last cycle."""
        m.submodules.parity = parity = ParityWatch()
        m.d.comb += [
            parity.wrong.eq(self.wrong),
            parity.otherwise.eq(otherwise),
            parity.failed.eq(failed),
            parity.restore.eq(restore),
            self.fails.eq(parity.fails),
            *(side.parity.eq(parity.cause) for side in sides),
        ]
        return parity.told

    def elaborate_words(self, m, sides, closed, reviving, masked):
        """Offer a word to the core unless the core is cut off; note what the core owes for it."""
        word = self.words.payload
        control = word.body.control
        is_control = word.kind == InputKind.CONTROL
        announced = Signal()  # what is owed for the word at hand has been noted
        rooms = sides[0].room & sides[1].room
        offered = self.words.valid & ~reviving & (announced | rooms)
        for n, side in enumerate(sides):
            stop = side.stop
            m.d.comb += [
                stop.star.eq(word.star[n]),
                stop.mark.eq(is_control & answers_mark(control)),
                *(stop[name].eq(word[name]) for name in ("disorder", "illegal", "free")),
                stop.excused.eq(masked),
                side.add.eq(offered & ~announced & (stop.star | stop.mark)),
            ]
            if self.parameters.engine.rounds:
                m.d.comb += stop.inner.eq(word.rounds.any())
        m.d.comb += [
            self.core_words.payload.eq(word),
            self.core_words.valid.eq(offered & ~closed),
            self.words.ready.eq(offered & (closed | self.core_words.ready)),
        ]
        m.d.sync += announced.eq(offered & ~self.words.ready)

    def elaborate_orders(self, m, failed, masked, reviving, restore, owes):
        """Execute MASK and UNMASK of this core, once the word has been passed on."""
        word = self.words.payload
        control = word.body.control
        taken = self.words.valid & self.words.ready & (word.kind == InputKind.CONTROL)
        mine = taken & (control.value == self.position)
        count = Signal(range(self.revival))
        m.d.comb += [
            restore.eq(count == self.revival - 1),
            self.core_reset.eq(reviving & ~owes & (count < self.RESET_CYCLES)),
        ]
        with m.If(mine & (control.op == Control.MASK)):
            m.d.sync += masked.eq(1)
        with m.If(mine & (control.op == Control.UNMASK)):
            m.d.sync += reviving.eq(failed | masked)
        with m.If(restore):
            m.d.sync += [masked.eq(0), reviving.eq(0), count.eq(0)]
        with m.Elif(reviving & ~owes):
            m.d.sync += count.eq(count + 1)
