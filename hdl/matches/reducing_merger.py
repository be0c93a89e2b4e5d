# SPDX-License-Identifier: Apache-2.0
"""The tree that combines reductions."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.scan.serializers import MatchQueue
from hdl.streams.registers import StreamRegister
from hdl.trees.merger import OrderedMergerTree
from hdl.words.cells import MatchKind, combined_values, stored_value_shape, values_layout
from hdl.words.results import node_result
from hdl.words.spans import pointer_layout

from .match_reducer import MatchReducer

__all__ = ["ReducingMerger", "ReducingQueue", "ReducingTree"]


class ReducingMerger(wiring.Component):
    """Take one word from every port at once, and emit their combination.

    All cores close the same groups, so all ports show the same sequence of values, stars and marks.
    Counts and sums are added, the least and the greatest value are chosen, and the faults of a star
    or mark are those of any port. So there is no order of ports to keep.

    A word waits until every port shows one. The merger takes no word of a port before that, so
    ports that are ahead are stopped.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.
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
        if not 1 <= ports <= parameters.fan_in:
            raise ValueError(f"A merger has 1 to {parameters.fan_in} ports, not {ports!r}")
        self.parameters = parameters
        self.level = level
        self.ports = ports
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, level))).array(ports),
                "o": Out(stream.Signature(node_result(parameters, level + 1))),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))
        ports = []
        for n, i in enumerate(self.i):
            m.submodules[f"port_{n}"] = port = StreamRegister(i.payload.shape(), early=["kind"])
            connect(m, flipped(i), port.i)
            ports.append(port.o)
        every = Cat(port.valid for port in ports).all()
        m.d.comb += [
            output.i.valid.eq(every),
            *(port.ready.eq(every & output.i.ready) for port in ports),
        ]
        self.elaborate_word(m, output.i.payload, [port.payload for port in ports])
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_word(self, m, word, shown):
        """Combine the words of all ports, which are of one kind."""
        m.d.comb += word.kind.eq(shown[0].kind)
        with m.If(shown[0].kind == MatchKind.VALUE):
            layout = values_layout(self.parameters, self.level + 1)
            values = combined_values([one.body.value for one in shown])
            m.d.comb += [
                word.body.value.probe.eq(shown[0].body.value.probe),
                *(word.body.value[name].eq(values[name]) for name, _ in layout),
            ]
        with m.Else():
            m.d.comb += [
                word.body.punctuation.eq(shown[0].body.punctuation),
                word.body.punctuation.overflow.eq(
                    Cat(one.body.punctuation.overflow for one in shown).any()
                ),
            ]


class ReducingTree(OrderedMergerTree):
    """Gather the values of all cores.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels; none with a single
    core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`.
    """

    def shape(self, level):
        """Return the layout of a result after ``level`` mergers."""
        return node_result(self.parameters, level)

    def merger(self, *, level, ports):
        """Return a merger of results."""
        return ReducingMerger(self.parameters, level=level, ports=ports)


class ReducingQueue(MatchQueue):
    """Queue the rows that have matches, and reduce their matches by probe.

    It is a :class:`hdl.scan.serializers.MatchQueue` with a :class:`MatchReducer` in the place of
    the pair serializer.

    Latency: :attr:`latency` cycles from ``matches`` to the first word: 6, and 3 more with several
    lanes. Throughput: 1 lane with matches per cycle.

    Parameters
    ----------
    parameters, in_flight, depth, bits
        Those of a ``MatchQueue``.

    Members
    -------
    place, value, finished
        Those of a :class:`MatchReducer`.

    All others are those of a ``MatchQueue``.
    """

    def serializer(self):
        """Return what turns lanes into results."""
        return MatchReducer(self.parameters)

    def members(self):
        """Return the members beside those that every queue has."""
        return {
            "place": Out(pointer_layout(self.parameters)),
            "value": In(stored_value_shape(self.parameters)),
            "finished": Out(1),
        }

    def elaborate(self, platform):
        m = super().elaborate(platform)
        reducer = self._pairs
        m.d.comb += [
            self.place.eq(reducer.place),
            reducer.value.eq(self.value),
            self.finished.eq(reducer.finished),
        ]
        return m
