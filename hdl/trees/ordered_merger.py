# SPDX-License-Identifier: Apache-2.0
"""Mergers that take punctuated streams in the order of their ports, whatever the words hold."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import leaf_beside, tree_levels

__all__ = ["OrderedMerger", "OrderedMergerTree"]


class OrderedMerger(wiring.Component):
    """Merge punctuated streams into one, port by port. A subclass says what the words hold.

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

    With a single core, there is nothing to merge, and its results pass unchanged.

    Parameters
    ----------
    parameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in`` (the seed's *c*).

    Members
    -------
    i : In(stream.Signature(self.shape(0))).array(cores)
    o : Out(stream.Signature(self.shape(levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`. A merger takes the reset of a
        core near it.
    """

    def __init__(self, parameters, *, level_latency=2):
        self.parameters = parameters
        self.levels = len(tree_levels(parameters.cores, parameters.fan_in))
        self.latency = level_latency * self.levels if parameters.cores > 1 else 0
        super().__init__(
            {
                "i": In(stream.Signature(self.shape(0))).array(parameters.cores),
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
        if self.parameters.cores > 1:
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
        cores, fan_in = self.parameters.cores, self.parameters.fan_in
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(cores, fan_in)):
            parents = []
            for n in range(count):
                group = children[n * fan_in : (n + 1) * fan_in]
                merger = self.merger(level=level, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = merger
                nearest = leaf_beside(level, n, arity=fan_in, leaves=cores)
                m.d.comb += merger.reset.eq(self.resets[nearest])
                place = f"{level}_{n}"
                group = self.elaborate_before(m, place, group, self.resets[nearest], level=level)
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
