# SPDX-License-Identifier: Apache-2.0
"""The stars and marks that a region owes, and who sends them: the region, or its gate."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.pointer_queue import PointerQueue
from hdl.words.results import ResultKind, node_result

__all__ = ["OwedStops", "owed_layout"]


def owed_layout(parameters):
    """Return the layout of what a region owes for a word: a star, a mark, or a star and a mark.

    ``star``, ``mark``: what is owed, in this order.
    ``disorder``, ``illegal``, ``free``: what the star and the mark report
      (:func:`hdl.words.results.punctuation_layout`).
    ``excused``: the core was masked by a word before this one, so its results are not missed.
    ``inner``, with rounds: the mark says that results come in rounds from there on.
    """
    inner = ["inner"] * parameters.rounds
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
                **({"parity": In(2)} if parameters.parity else {}),
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
        if self.parameters.rounds:
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
                if self.parameters.rounds
                else []
            ),
            *self.cause_of(own, first),
            Value.cast(self.o.payload).eq(
                Mux(answers, Value.cast(own), Value.cast(self.i.payload))
            ),
        ]

    def cause_of(self, own, first):
        """Return the assignments that tell why results are missing."""
        if not self.parameters.parity:
            return []
        cause = self.parity & (~first.excused).replicate(2)
        return [own.body.punctuation.failed_parity.eq(cause)]
