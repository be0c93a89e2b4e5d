# SPDX-License-Identifier: Apache-2.0
"""The entries of both lanes, where the coordinator sends its words into the chain."""

from amaranth import *
from amaranth.lib.wiring import connect, flipped

from hdl.streams.registers import StreamRegister
from hdl.words.inputs import Control

from .layouts import lane_word

__all__ = ["MOST", "enter_lanes", "number_tuples"]

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
    sent = [Signal(parameters.ordinal_bits, name=f"sent_{name}") for name in "rs"]
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
