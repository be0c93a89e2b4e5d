# SPDX-License-Identifier: Apache-2.0
"""Stream registers.

Every stream of the kit follows the four transfer rules of Amaranth streams. A transfer happens when
``valid`` and ``ready`` are both high. A producer holds ``valid`` and ``payload`` until the
transfer. A producer does not wait for ``ready`` before it raises ``valid``. A consumer may change
``ready`` at any time.
"""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .queues import PointerQueue

__all__ = [
    "SteadyQueue",
    "SteadyRegister",
    "StreamFork",
    "StreamRegister",
    "delayed",
    "flagged_register",
    "steady",
]


class StreamRegister(wiring.Component):
    """A skid buffer: no combinational path leads from any input to any output.

    It holds up to two payloads, in two payload registers that are used in turn. Two state bits
    enable the payload registers, so neither ``i.valid`` nor ``o.ready`` drives as many registers as
    a payload has bits. A multiplexer at the output selects the payload register.

    A consumer can have the fields that its decisions depend on *early*, that is, directly from an
    output register instead of the multiplexer. While the stream register is empty, the early fields
    show what the input showed in the previous cycle. An early field that is zero whenever ``i`` is
    invalid is therefore also zero whenever the stream register is empty, and needs no ``o.valid``
    beside it.

    Reset empties the stream register. The early fields themselves have no reset. With early fields,
    a reset must last at least two cycles, and the input must be invalid in the last of them.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    early : sequence of str
        Fields of the payload, which is then a structure, that come directly from a register.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    """

    def __init__(self, shape, *, early=()):
        self.shape = shape
        self.early = tuple(early)
        self.latency = 1
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        payloads = [Signal(self.shape, reset_less=True, name=f"payload_{n}") for n in range(2)]
        write, read = Signal(), Signal()  # which payload register is next
        ready, valid = Signal(init=1), Signal()  # one payload register is free; one is in use
        push = self.i.valid & ready
        pop = valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(ready),
            self.o.valid.eq(valid),
            self.o.payload.eq(Mux(read, *reversed(payloads))),
        ]
        for n, payload in enumerate(payloads):
            with m.If(ready & (write == n)):
                m.d.sync += payload.eq(self.i.payload)
        m.d.sync += [
            write.eq(write ^ push),
            read.eq(read ^ pop),
            valid.eq(push | (valid & ~(pop & ready))),
            ready.eq(pop | ~valid | (ready & ~push)),
        ]
        if self.early:
            self.elaborate_early(m, ready, valid)
        return m

    def elaborate_early(self, m, ready, valid):
        """Register the early fields of the payload at the output and of the payload after it."""
        coming = Cat(Value.cast(self.i.payload[name]) for name in self.early)
        spare, output = (
            Signal(len(coming), reset_less=True, name=name) for name in ("next_early", "early")
        )
        with m.If(ready):
            m.d.sync += spare.eq(coming)
        with m.If(~valid | self.o.ready):
            m.d.sync += output.eq(Mux(ready, coming, spare))
        m.d.comb += Cat(Value.cast(self.o.payload[name]) for name in self.early).eq(output)


def flagged_register(m, name, i, *, flags):
    """Put a register behind an input stream, and add flags to the payload as early fields.

    Parameters
    ----------
    m : Module
        Module of the component. The register becomes its submodule ``name``.
    name : str
        Name of the submodule.
    i : stream
        The input stream, as the component sees it.
    flags : function
        Returns the flags that the component needs of ``i``, a dictionary of names to values.

    Returns
    -------
    stream
        Output of the register. Its payload holds the payload of ``i`` as ``word``, and the flags. A
        flag that is zero whenever ``i`` is invalid is also zero whenever the register is empty.
    """
    known = {flag: Value.cast(value) for flag, value in flags(i).items()}
    shapes = {flag: value.shape() for flag, value in known.items()}
    shape = data.StructLayout({**shapes, "word": i.payload.shape()})
    m.submodules[name] = placed = StreamRegister(shape, early=list(known))
    m.d.comb += [
        placed.i.valid.eq(i.valid),
        i.ready.eq(placed.i.ready),
        placed.i.payload.word.eq(i.payload),
        *(placed.i.payload[flag].eq(value) for flag, value in known.items()),
    ]
    return placed.o


def delayed(m, values, name, *, flags):
    """Put one register behind each of several related values.

    Parameters
    ----------
    m : Module
        Module that receives the registers.
    values : dict of str to Value
        Values to delay, by name.
    name : str
        Prefix of the register names. The name of the value follows it.
    flags : sequence of str
        Names of the values that tell whether the other values are meaningful. Only these are reset.

    Returns
    -------
    dict of str to Signal
        The values of the previous cycle, by the same names.
    """
    later = {}
    for field, value in values.items():
        later[field] = Signal(
            Value.cast(value).shape(), name=f"{name}_{field}", reset_less=field not in flags
        )
        m.d.sync += later[field].eq(value)
    return later


# A steady stream is an Amaranth stream whose ``ready`` is always high: a payload is transferred
# in the cycle in which it is valid. A pipeline stage is one register that nothing stalls, so a
# pipeline can have as many stages as the clock period demands. Back-pressure acts in front of the
# first stage: the producer must not send more payloads than the queue behind the last stage has
# room for.


def steady(shape):
    """Return the signature of a stream that is always ready."""
    return stream.Signature(shape, always_ready=True)


class SteadyRegister(wiring.Component):
    """A pipeline register without handshake: what comes in a cycle leaves in the next one.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    gated : bool
        Whether the payload register is only loaded with valid payloads. On the chip this is a clock
        enable. In simulation, an idle stage then costs nothing.

    Members
    -------
    i : In(steady(shape))
    o : Out(steady(shape))
    """

    def __init__(self, shape, *, gated=False):
        self.shape = shape
        self.gated = gated
        self.latency = 1
        super().__init__({"i": In(steady(shape)), "o": Out(steady(shape))})

    def elaborate(self, platform):
        m = Module()
        payload = Signal(self.shape, reset_less=True, name="held")
        valid = Signal(name="holds")
        load = payload.eq(self.i.payload)
        if self.gated:
            with m.If(self.i.valid):
                m.d.sync += load
        else:
            m.d.sync += load
        m.d.sync += valid.eq(self.i.valid)
        m.d.comb += [self.o.payload.eq(payload), self.o.valid.eq(valid)]
        return m


class SteadyQueue(wiring.Component):
    """FIFO with credits at the end of a pipeline without handshake; its output may be stalled.

    ``room`` is high while the queue has a place for one more payload besides all payloads that are
    under way in the pipeline. A producer that sends only while ``room`` is high never overflows the
    queue. A stall leaves no gap in the output either: the queue holds as many payloads as the
    output can take before the next ones arrive through the pipeline.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    stages : int
        Cycles from the check of ``room`` by the producer to the payload at ``i``: the latency of
        the pipeline.

    Members
    -------
    i : In(steady(shape))
    o : Out(stream.Signature(shape))
    room : Out(1)
        From a register.
    """

    def __init__(self, shape, *, stages):
        self.shape = shape
        self.stages = stages
        # Places for the payloads that are under way when `room` falls. As many again leave the
        # queue before the first payload arrives that was sent after `room` rose.
        self.depth = 1 << ceil_log2(2 * stages + 4)
        self.latency = 1
        super().__init__(
            {"i": In(steady(shape)), "o": Out(stream.Signature(shape)), "room": Out(1, init=1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = PointerQueue(
            self.shape, depth=self.depth, reserve=self.stages + 1
        )
        m.d.comb += [
            queue.add.eq(self.i.valid),
            queue.last.eq(self.i.payload),
            queue.take.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(queue.filled),
            self.o.payload.eq(queue.first),
            self.room.eq(queue.room),
        ]
        return m


class StreamFork(wiring.Component):
    """Offer every payload to all outputs until each output has taken it.

    An output does not wait for the other outputs: its ``valid`` does not depend on their ``ready``.
    The input advances in the cycle in which the last output takes the payload.

    While ``i.valid`` is low, the fork clears its record of the outputs that have taken a payload. A
    reset of the preceding stage therefore resets the fork as well.

    Latency: 0 cycles. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    outputs : int
        Number of outputs, at least one.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape)).array(outputs)
    """

    def __init__(self, shape, *, outputs):
        if outputs < 1:
            raise ValueError(f"A fork needs at least one output, not {outputs!r}")
        self.shape = shape
        self.outputs = outputs
        self.latency = 0
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(outputs),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Outputs that took the current payload in an earlier cycle.
        taken = Signal(self.outputs, reset_less=True)
        done = taken | Cat(o.ready for o in self.o)
        m.d.comb += self.i.ready.eq(done.all())
        m.d.sync += taken.eq(done & (self.i.valid & ~self.i.ready).replicate(self.outputs))
        for n, o in enumerate(self.o):
            m.d.comb += [o.payload.eq(self.i.payload), o.valid.eq(self.i.valid & ~taken[n])]
        return m
