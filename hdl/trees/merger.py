# SPDX-License-Identifier: Apache-2.0
"""Mergers of results, in any order, in order and in rounds."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import leaf_beside, tree_levels
from hdl.words.results import ResultKind, node_result, pair_layout
from hdl.words.values import ROUND_BITS

__all__ = ["Merger", "MergerTree", "OrderedMerger", "OrderedMergerTree", "RoundAligner"]


class OrderedMerger(wiring.Component):
    """Arbiter of punctuated streams, port by port; a subclass says what the words hold.

    In order, the merger serves port 0 up to its star or mark, then port 1, and so on. A port that
    shows its star or mark waits. When all ports show one, the merger takes them together and emits
    a single star or mark. The ports themselves show which one is next, so the merger need not
    remember it.

    There are registers at the inputs and at the output. So a decision depends on, and changes,
    nearby registers only, and there is no logic on the way to the next merger.

    Latency: 2 cycles. Throughput: 1 word per cycle. A star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    ports : int
        Number of inputs, one to ``most``.
    most : int
        Arity of the tree.
    shape_in, shape_out : StructLayout
        Words at the inputs and at the output, with a ``kind``.
    datum, mark
        Kind of a word between stars, and of a mark.

    Members
    -------
    i : In(stream.Signature(shape_in)).array(ports)
    o : Out(stream.Signature(shape_out))
    reset : In(1)
        Resets all registers of the merger.
    """

    def __init__(self, *, ports, most, shape_in, shape_out, datum, mark):
        if not 1 <= ports <= most:
            raise ValueError(f"A merger has 1 to {most} ports, not {ports!r}")
        self.ports = ports
        self.latency = 2
        self._datum, self._mark = datum, mark
        self._shape_out = shape_out
        super().__init__(
            {
                "i": In(stream.Signature(shape_in)).array(ports),
                "o": Out(stream.Signature(shape_out)),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_merging(m)
        return reset_nearby(m, platform, reset=self.reset)

    def port_flags(self, port):
        """Return the flags of a word that the merger decides by; zero while it is invalid."""
        kind = port.payload.kind
        return {
            "pair": port.valid & (kind == self._datum),
            "stop": port.valid & (kind != self._datum),
            "mark": port.valid & (kind == self._mark),
        }

    def elaborate_merging(self, m):
        """Connect the input registers to the output register, as the ports take turns."""
        m.submodules.output = output = StreamRegister(self._shape_out, early=["kind"])
        connect(m, output.o, flipped(self.o))
        inputs = [
            flagged_register(m, f"port_{n}", i, flags=self.port_flags) for n, i in enumerate(self.i)
        ]
        pair = Signal(self.ports)  # ports that show a word between stars
        stop = Signal(self.ports)  # ports that show a star or mark
        m.d.comb += [
            pair.eq(Cat(i.payload.pair for i in inputs)),
            stop.eq(Cat(i.payload.stop for i in inputs)),
        ]
        words = [i.payload.word for i in inputs]
        free = Signal()
        served = self.elaborate_turn(m, pair, stop, free)
        m.d.comb += [
            output.i.valid.eq(served.any() | stop.all()),
            *(i.ready.eq(output.i.ready & (served[n] | stop.all())) for n, i in enumerate(inputs)),
        ]
        self.elaborate_word(m, output.i.payload, words, pair)
        marked = stop.all() & output.i.ready & inputs[0].payload.mark
        self.elaborate_order(m, free, marked, words)

    def elaborate_turn(self, m, pair, stop, free):
        """Return which port's word is served: the lowest one that no port before it blocks."""
        served = Signal(self.ports)
        blocked = Const(0)  # a port before this one goes first
        for n in range(self.ports):
            m.d.comb += served[n].eq(pair[n] & ~blocked)
            blocked |= Mux(free, pair[n], ~stop[n])
        return served

    def elaborate_order(self, m, free, marked, words):
        """Set ``free`` where the order of ports does not matter; here it always does."""

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the word of the lowest port that shows one, or else merge the stars or marks.

        If any port is served, it is this one. If none is, the output is invalid and its payload may
        be anything. So the choice of the port does not depend on whether the port is served.
        """
        raise NotImplementedError


class OrderedMergerTree(wiring.Component):
    """A tree of mergers over all cores, in the order of the cores. A subclass says which mergers.

    With a single stream, there is nothing to merge, and its results pass unchanged.

    Parameters
    ----------
    parameters
        Parameters of the accelerator: ``cores``, arity ``fan_in`` (the seed's *c*).
    streams : int
        Streams of each core, one by default.

    Members
    -------
    i : In(stream.Signature(self.shape(0))).array(cores * streams)
    o : Out(stream.Signature(self.shape(levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`. A merger takes the reset of a
        core near it.
    """

    def __init__(self, parameters, *, level_latency=2, streams=1):
        self.parameters = parameters
        self.streams = streams
        self.leaves = parameters.cores * streams
        self.levels = len(tree_levels(self.leaves, parameters.fan_in))
        self.latency = level_latency * self.levels if self.leaves > 1 else 0
        super().__init__(
            {
                "i": In(stream.Signature(self.shape(0))).array(self.leaves),
                "o": Out(stream.Signature(self.shape(self.levels))),
                "resets": In(1).array(parameters.cores),
            }
        )

    def shape(self, level):
        """Return the layout of a word after ``level`` mergers."""
        raise NotImplementedError

    def merger(self, *, level, ports):
        """Return a merger with ``level`` mergers between it and the cores."""
        raise NotImplementedError

    def elaborate_before(self, m, place, group, reset, *, level):
        """Put what a merger needs in front of it, if anything; return the streams behind that."""
        return group

    def elaborate(self, platform):
        m = Module()
        if self.leaves > 1:
            self.elaborate_mergers(m)
            return m
        (i,) = self.i
        m.d.comb += [
            self.o.valid.eq(i.valid),
            i.ready.eq(self.o.ready),
            # The digit of the only port is zero, and above all other bits.
            Value.cast(self.o.payload).eq(Value.cast(i.payload)),
        ]
        return m

    def elaborate_mergers(self, m):
        """Build the tree level by level, from the cores to the root."""
        fan_in = self.parameters.fan_in
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(self.leaves, fan_in)):
            parents = []
            for n in range(count):
                group = children[n * fan_in : (n + 1) * fan_in]
                merger = self.merger(level=level, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = merger
                nearest = leaf_beside(level, n, arity=fan_in, leaves=self.leaves)
                reset = self.resets[nearest // self.streams]
                m.d.comb += merger.reset.eq(reset)
                group = self.elaborate_before(m, f"{level}_{n}", group, reset, level=level)
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))


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

    The results of a probe come to each port round by round (:mod:`hdl.words.values`), with a star
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


class Merger(OrderedMerger):
    """Merge the results of regions.

    The star or mark that the merger emits has the faults of all ports.

    A mark may declare the order of ports *free* until the next mark. Then the merger serves any
    port that shows a pair, the lowest first. It still waits for a star or mark from all ports. It
    does the same while results come in rounds, because then a
    :class:`hdl.trees.merger.RoundAligner` in front of it keeps the order.

    Every pair gets a digit, the number of the port through which it came. If cores have gates, so
    does the failed core of a star or mark; of several, the one at the lowest port.

    A word waits for no input word later than the one that closed its group, so a tree of mergers in
    order cannot deadlock (``docs/decisions``).

    Latency: 2 cycles. Throughput: 1 word per cycle. A star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    level : int
        Number of mergers between this one and the regions; zero beside the regions.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, level))).array(ports)
    o : Out(stream.Signature(node_result(parameters, level + 1)))
    reset : In(1)
        Resets all registers of the merger.
    """

    def __init__(self, parameters, *, level, ports):
        self.parameters = parameters
        self._digit_bits = ceil_log2(parameters.fan_in)
        super().__init__(
            ports=ports,
            most=parameters.fan_in,
            shape_in=node_result(parameters, level),
            shape_out=node_result(parameters, level + 1),
            datum=ResultKind.PAIR,
            mark=ResultKind.MARK,
        )

    def elaborate_order(self, m, free, marked, words):
        """Let ports go in any order from a mark on that says so."""
        punctuation = words[0].body.punctuation
        inner = punctuation.inner if self.parameters.engine.rounds else 0
        with m.If(marked):
            m.d.sync += free.eq(punctuation.free | inner)

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the pair of the lowest port that shows one, or else merge the stars or marks.

        If any pair is served, it is this one. If none is served, the output is invalid and its
        payload may be anything. So the choice of the port does not depend on whether the port is
        served.
        """
        pairs = [self.with_digit(m, word.body.pair, n) for n, word in enumerate(words)]
        lowest = pairs[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], pairs[n], lowest)
        m.d.comb += chosen.kind.eq(Mux(pair.any(), ResultKind.PAIR, words[0].kind))
        if self.parameters.engine.rounds:  # all stars are of the same round
            number = words[-1].round
            for n in reversed(range(self.ports - 1)):
                number = Mux(pair[n], words[n].round, number)
            m.d.comb += chosen.round.eq(number)
        with m.If(pair.any()):
            m.d.comb += chosen.body.pair.eq(lowest)
        with m.Else():
            m.d.comb += [
                chosen.body.punctuation.eq(words[0].body.punctuation),
                chosen.body.punctuation.overflow.eq(
                    Cat(word.body.punctuation.overflow for word in words).any()
                ),
            ]
            if self.parameters.has_gates:
                self.elaborate_failed(m, chosen.body.punctuation, words)

    def elaborate_failed(self, m, chosen, words):
        """Name the first core whose results are missing, by a digit for the port."""
        stops = [word.body.punctuation for word in words]
        bits = len(stops[0].failed_core)
        first, cause = Const(0, bits + self._digit_bits), Const(0, 2)
        for n, stop in reversed(list(enumerate(stops))):
            core = Cat(stop.failed_core, Const(n, self._digit_bits))
            first = Mux(stop.failed, core, first)
            if self.parameters.engine.parity:
                cause = Mux(stop.failed, stop.failed_parity, cause)
        if self.parameters.engine.parity:
            m.d.comb += chosen.failed_parity.eq(cause)
        m.d.comb += [
            chosen.failed.eq(Cat(stop.failed for stop in stops).any()),
            chosen.failed_core.eq(first),
        ]

    def with_digit(self, m, pair, port):
        """Return the pair at ``port`` with the digit of the port added to its core number."""
        extended = Signal(pair_layout(self.parameters, len(pair.core) + self._digit_bits))
        m.d.comb += [
            extended.eq(pair),
            extended.core.eq(Cat(pair.core, Const(port, self._digit_bits))),
        ]
        return extended


class MergerTree(OrderedMergerTree):
    """Gather the results of all regions of one side, in the order of the cores.

    With a single core, there is nothing to merge, and its results pass unchanged.

    With rounds, there is a :class:`hdl.trees.merger.RoundAligner` in front of each merger.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels, 4 with rounds;
    none with a single core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`. A merger takes the reset of a
        core near it.
    """

    def __init__(self, parameters):
        super().__init__(parameters, level_latency=2 * (1 + parameters.engine.rounds))

    def shape(self, level):
        """Return the layout of a result after ``level`` mergers."""
        return node_result(self.parameters, level)

    def merger(self, *, level, ports):
        """Return a merger of results."""
        return Merger(self.parameters, level=level, ports=ports)

    def elaborate_before(self, m, place, group, reset, *, level):
        """With rounds, put an aligner in front of a merger."""
        if not self.parameters.engine.rounds:
            return group
        aligner = RoundAligner(self.parameters, level=level, ports=len(group))
        m.submodules[f"aligner_{place}"] = aligner
        m.d.comb += aligner.reset.eq(reset)
        for i, child in zip(aligner.i, group, strict=True):
            connect(m, child, i)
        return aligner.o
