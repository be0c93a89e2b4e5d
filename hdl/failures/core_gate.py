# SPDX-License-Identifier: Apache-2.0
"""Gate of a core: it masks the core, notices when the core fails, and answers in its place."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import STAGES, reset_nearby
from hdl.words.inputs import Control, InputKind
from hdl.words.operations import answers_mark
from hdl.words.prepared import region_word
from hdl.words.results import node_result

from .deadline_watch import DeadlineWatch
from .owed_stops import OwedStops
from .parity_watch import ParityWatch

__all__ = ["CoreGate"]


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
        self._watch = DeadlineWatch(max(1, parameters.failure_cycles), conditions=3)
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
                **({"wrong": In(2), "fails": Out(1)} if parameters.parity else {}),
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
        if self.parameters.parity:
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
            if self.parameters.rounds:
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
