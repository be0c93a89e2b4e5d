# SPDX-License-Identifier: Apache-2.0
"""Group values: sends the reductions of a group's probes, then its star and its mark."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister
from hdl.words.match_values import MatchKind, values_layout
from hdl.words.results import node_result
from hdl.words.spans import ending_layout

__all__ = ["GroupValues", "group_values_layout"]


def group_values_layout(parameters):
    """Return the layout of the reductions of all probes of a group, and of what follows them.

    The first ``ending.count`` of ``values`` have a meaning.
    """
    values = data.ArrayLayout(values_layout(parameters, 0), parameters.probes)
    return data.StructLayout({"values": values, "ending": ending_layout(parameters)})


class GroupValues(wiring.Component):
    """Send a VALUE for each probe of a group, in order, then the star and the mark of the group.

    The group is held in registers that are shifted by one probe with each VALUE, so all values
    leave from the same place. The next group is taken with the last word of the one before.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.

    Members
    -------
    i : In(stream.Signature(group_values_layout(parameters)))
    o : Out(stream.Signature(node_result(parameters, 0)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(group_values_layout(parameters))),
                "o": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))
        group = Signal(group_values_layout(self.parameters), reset_less=True)
        count = self.parameters.probes
        left = Signal(range(count + 1))  # values to send
        star, mark = Signal(), Signal()  # yet to be sent
        number = Signal(self.parameters.probe_bits)  # of the probe, since the last star
        word = output.i
        is_value = left != 0
        m.d.comb += word.valid.eq(is_value | star | mark)
        last_word = Mux(is_value, (left == 1) & ~star & ~mark, ~(star & mark))
        m.d.comb += self.i.ready.eq(~word.valid | (last_word & word.ready))
        self.elaborate_word(m, word.payload, group, number, is_value, star)

        with m.If(word.ready & word.valid):
            with m.If(is_value):
                m.d.sync += [left.eq(left - 1), number.eq(number + 1)]
                m.d.sync += [group.values[n].eq(group.values[n + 1]) for n in range(count - 1)]
            with m.Elif(star):
                m.d.sync += [star.eq(0), number.eq(0)]
            with m.Else():
                m.d.sync += mark.eq(0)
        with m.If(self.i.valid & self.i.ready):
            ending = self.i.payload.ending
            m.d.sync += [
                group.eq(self.i.payload),
                left.eq(ending.count),
                star.eq(ending.star),
                mark.eq(ending.mark),
            ]
        return m

    def elaborate_word(self, m, word, group, number, is_value, star):
        """Choose the next word of the group."""
        values = group.values[0]
        with m.If(is_value):
            m.d.comb += [
                word.kind.eq(MatchKind.VALUE),
                word.body.value.probe.eq(number),
                *(word.body.value[name].eq(values[name]) for name, _ in values.shape()),
            ]
        with m.Else():
            m.d.comb += [
                word.kind.eq(Mux(star, MatchKind.STAR, MatchKind.MARK)),
                word.body.punctuation.eq(group.ending.punctuation),
            ]
