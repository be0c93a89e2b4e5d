# SPDX-License-Identifier: Apache-2.0
"""Entries of a core's lanes, and tuples in flight."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.streams.registers import StreamRegister, delayed
from hdl.words.inputs import Control
from hdl.words.prepared import stored_layout

from .layouts import lane_word

__all__ = ["MOST", "InFlight", "enter_lanes", "number_tuples"]


class InFlight(wiring.Component):
    """Remember tuples of S until they are acknowledged, so that tuples of R meet them.

    A tuple of R that comes from the neighbour has passed it before the neighbour took the tuples of
    S that are here: acknowledgements and tuples of R share a lane. So these are those that it
    crosses on the way between the two cores, and it crosses each tuple of S in one place. The last
    core has no neighbour, and nothing in flight.

    Latency: 1 cycle. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    last : In(1)
        This is the last core.
    restart : In(1)
        There is nothing, and numbers begin at zero.
    add : In(1)
        A tuple of S with the number ``arrived`` is sent on.
    arrived : In
    key, homeless, oldest : In
        Its key, whether its core is still to come, and how many tuples of R had expired before it.
    acknowledged, expires : In(1)
        The neighbour has taken the oldest one; the oldest tuple of S leaves its window.
    tail : Out
        Number of the first one that a tuple of R may have to meet.
    met : Out(BITS)
        How many that are.
    kept : In
        Number of the first one that is still to be compared.
    room : Out(1)
        From a register; once it falls, two more may come.
    place : In(BITS)
        Lowest bits of a number.
    met_key, met_homeless, met_oldest : Out
        Of the tuple with this number, in the same cycle.
    """

    BITS = 5
    #: Tuples that may still come without room, or before what was compared with is known.
    RESERVE = 8

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        tag, key = unsigned(parameters.arrangement.ordinal_bits), stored_layout(parameters)
        super().__init__(
            {
                "last": In(1),
                "restart": In(1),
                "add": In(1),
                "arrived": In(tag),
                "key": In(key),
                "homeless": In(1),
                "oldest": In(tag),
                "acknowledged": In(1),
                "expires": In(1),
                "tail": Out(tag),
                "met": Out(self.BITS),
                "kept": In(tag),
                "room": Out(1),
                "place": In(self.BITS),
                "met_key": Out(key),
                "met_homeless": Out(1),
                "met_oldest": Out(tag),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_memory(m)
        tag = len(self.arrived)
        ahead = (self.arrived - self.tail)[:tag]
        used = (self.arrived - self.kept)[:tag]
        most = (1 << self.BITS) - self.RESERVE
        m.d.comb += self.met.eq(Mux(self.last | ahead[-1], 0, ahead))
        m.d.sync += self.room.eq(self.last | (used < most) | used[-1])
        # What has expired minus what was acknowledged: the tail is the greater of the two.
        lead = Signal(signed(tag))
        m.d.sync += lead.eq(lead + self.expires - self.acknowledged)
        with m.If((self.expires & (lead >= 0)) | (self.acknowledged & (lead <= 0))):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(self.restart):
            m.d.sync += [self.tail.eq(0), lead.eq(0)]
        return m

    def elaborate_memory(self, m):
        """Write what is sent on a cycle later; read what is asked for."""
        shape = data.StructLayout(
            {"key": self.key.shape(), "homeless": 1, "oldest": len(self.oldest)}
        )
        m.submodules.memory = rows = memory.Memory(shape=shape, depth=1 << self.BITS, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        sent = {"add": self.add, "place": self.arrived[: self.BITS]}
        sent |= {name: getattr(self, name) for name in ("homeless", "oldest")}
        sent["key"] = Value.cast(self.key)
        near = delayed(m, sent, "near", flags=("add",))
        m.d.comb += [
            write.en.eq(near["add"]),
            write.addr.eq(near["place"]),
            Value.cast(write.data.key).eq(near["key"]),
            write.data.homeless.eq(near["homeless"]),
            write.data.oldest.eq(near["oldest"]),
            read.addr.eq(self.place),
            self.met_key.eq(read.data.key),
            self.met_homeless.eq(read.data.homeless),
            self.met_oldest.eq(read.data.oldest),
        ]


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
