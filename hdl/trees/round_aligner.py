# SPDX-License-Identifier: Apache-2.0
"""Aligns the rounds of several ports, so that a merger takes them like groups."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.words.results import ResultKind, node_result
from hdl.words.rounds import ROUND_BITS

__all__ = ["RoundAligner"]


def port_flags(port):
    """Return the flags of a port's word by which it is aligned; zero while it is invalid."""
    word = port.payload
    star = word.kind == ResultKind.STAR
    inner = star & word.body.punctuation.inner
    pair = word.kind == ResultKind.PAIR
    return {
        "pair": port.valid & pair,
        "ends": port.valid & ~(pair | inner),  # the results of a probe, or of all before a mark
        "mark": port.valid & (word.kind == ResultKind.MARK),
        # The round that the port is in, one bit for each number.
        "within": ((pair | inner) & port.valid) << word.round,
    }


def lowest(bits):
    """Return the lowest bit that is set, as a one-hot value."""
    return bits & (~bits + 1)[: len(bits)]


class RoundAligner(wiring.Component):
    """Give every port the stars of the same rounds, in front of a merger.

    The results of a probe come to each port round by round (:mod:`hdl.words.rounds`), with a star
    after each round whose last tuple the port's cores hold, and a star of the probe at the end.
    Windows of different cores begin and end one round apart at most, so a port may begin a round
    later, or end a round earlier, than another one. Such a port gets a star for a round that it has
    nothing of. A merger behind the aligner then sees the stars of all ports together.

    While results come in rounds, the aligner waits until every port shows a word, and the ports in
    the earliest round go first. Their pairs pass one at a time, those of the lowest port first, so
    the merger may take any pair that it sees. When none of these ports shows a pair, the star of
    the round passes at all ports at once. So do the stars of the probe when all ports show theirs.

    A mark says whether results come in rounds until the next mark. Marks pass at all ports at once.
    Without rounds, every port passes its words by itself.

    If the ports were in other than two neighbouring rounds, which happens after an overflow only,
    the order would mean nothing, but every word would still pass.

    Latency: 2 cycles. Throughput: 1 star at all ports, or 1 pair, per cycle; without rounds, 1 word
    per cycle and port.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with rounds.
    level : int
        Number of mergers between the aligner and the regions.
    ports : int
        Number of inputs and outputs, at least one.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, level))).array(ports)
    o : Out(stream.Signature(node_result(parameters, level))).array(ports)
    reset : In(1)
        Resets all registers of the aligner.
    """

    def __init__(self, parameters, *, level, ports):
        self.parameters = parameters
        self.ports = ports
        self.latency = 2
        self._shape = node_result(parameters, level)
        super().__init__(
            {
                "i": In(stream.Signature(self._shape)).array(ports),
                "o": Out(stream.Signature(self._shape)).array(ports),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        inputs = [
            flagged_register(m, f"port_{n}", i, flags=port_flags) for n, i in enumerate(self.i)
        ]
        outputs = [StreamRegister(self._shape, early=["kind"]) for _ in self.o]
        for n, (output, o) in enumerate(zip(outputs, self.o, strict=True)):
            m.submodules[f"output_{n}"] = output
            connect(m, output.o, flipped(o))
        shown = [i.payload for i in inputs]
        rounds = Signal()  # results come in rounds
        number, here = self.elaborate_round(m, shown)
        star_word = self.star_of(m, number)
        pairs = here & Cat(is_.pair for is_ in shown)
        present = Cat(i.valid for i in inputs).all()
        ended = Cat(Mux(rounds, is_.ends, is_.mark) for is_ in shown).all()
        ready = Cat(output.i.ready for output in outputs).all()
        # The same step at all ports: the star of a round, or the ends of a probe or of everything.
        star, end = Signal(), Signal()
        m.d.comb += [
            star.eq(rounds & present & here.any() & ~pairs.any() & ready),
            end.eq(ended & ready),
        ]
        own = Signal(self.ports)  # ports that pass a word by themselves
        with m.If(rounds):
            m.d.comb += own.eq(lowest(pairs) & present.replicate(self.ports))
        with m.Else():
            m.d.comb += own.eq(Cat(i.valid & ~i.payload.mark for i in inputs))
        for n, (i, output) in enumerate(zip(inputs, outputs, strict=True)):
            m.d.comb += [
                output.i.valid.eq(own[n] | star | end),
                output.i.payload.eq(shown[n].word),
                i.ready.eq((own[n] & output.i.ready) | (star & here[n]) | end),
            ]
            with m.If(star):
                m.d.comb += output.i.payload.eq(star_word)
        with m.If(end & shown[0].mark):
            m.d.sync += rounds.eq(shown[0].word.body.punctuation.inner)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_round(self, m, shown):
        """Return the earliest round of all ports, one bit per number, and the ports that are in it.

        Of two neighbouring rounds, the earlier one is that before which no port has a round.
        """
        numbers = 1 << ROUND_BITS
        any_in = reduce(or_, (is_.within for is_ in shown))
        number = Signal(numbers, name="earliest")
        earlier = any_in & ~any_in.rotate_left(1)
        # Of rounds that are no neighbours, any one will do.
        m.d.comb += number.eq(lowest(Mux(earlier.any(), earlier, any_in)))
        here = Signal(self.ports)
        m.d.comb += here.eq(Cat((is_.within & number).any() for is_ in shown))
        return number, here

    def star_of(self, m, number):
        """Return the star of a round, given by one bit per number."""
        star = Signal(self._shape, name="round_star")
        m.d.comb += [
            star.kind.eq(ResultKind.STAR),
            star.round.eq(Cat(number[1] | number[3], number[2] | number[3])),
            star.body.punctuation.inner.eq(1),
        ]
        return star
