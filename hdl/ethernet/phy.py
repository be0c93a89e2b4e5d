# SPDX-License-Identifier: Apache-2.0
"""The pins of a gigabit PHY: both edges of its clocks, and frames on them."""

from amaranth import *
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.link.frames import CRC_BITS, RESIDUE, crc_step

from .frames import (
    FCS_BYTES,
    GAP_BYTES,
    LEAST_BYTES,
    LONGEST_BYTES,
    PREAMBLE,
    PREAMBLE_BYTES,
    SFD,
    FrameByte,
    GmiiSignature,
    ReceivedFrame,
)

__all__ = [
    "DoubleRateInput",
    "DoubleRateOutput",
    "GmiiReceiver",
    "GmiiTransmitter",
    "Rgmii",
    "delay_taps",
]


#: Picoseconds of a tap of an ECP5's delay line, and most taps.
TAP, MOST_TAPS = 25, 127


def delay_taps(delay):
    """Return the taps of a delay line for so many picoseconds.

    Raises
    ------
    ValueError
        If the delay line is not that long.
    """
    taps = round(delay / TAP)
    if not 0 <= taps <= MOST_TAPS:
        raise ValueError(
            f"Delay of a pin must be 0 to {MOST_TAPS * TAP} ps, not {delay!r} ps; delay the pin on "
            "the board or in the PHY"
        )
    return taps


def delayed(m, value, delay):
    """Return a pin behind a delay line, if it is to be delayed."""
    if not (taps := delay_taps(delay)):
        return value
    later = Signal()
    m.submodules += Instance(
        "DELAYG", p_DEL_MODE="USER_DEFINED", p_DEL_VALUE=taps, i_A=value, o_Z=later
    )
    return later


class DoubleRateInput(wiring.Component):
    """Sample pins at both edges of the clock of the domain ``ethernet``.

    Latency: 1 cycle from the rising edge at which ``rising`` is sampled; ``falling`` is sampled
    half a cycle later. Throughput: 2 bits per pin and cycle.

    Parameters
    ----------
    port : PortLike
        The pins, which are inputs.
    delay : int
        Picoseconds by which they are delayed.

    Members
    -------
    rising, falling : Out(len(port))
    """

    latency = 1

    def __init__(self, port, *, delay=0):
        self.port = port
        self.delay = delay
        delay_taps(delay)
        super().__init__({"rising": Out(len(port)), "falling": Out(len(port))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = pins = io.Buffer("i", self.port)
        if getattr(platform, "device", None) is None:
            self.elaborate_model(m, pins.i)
            return m
        for n in range(len(self.port)):
            m.submodules[f"cell_{n}"] = Instance(
                "IDDRX1F", i_D=delayed(m, pins.i[n], self.delay), i_RST=Const(0),
                i_SCLK=ClockSignal("ethernet"), o_Q0=self.rising[n], o_Q1=self.falling[n],
            )  # fmt: skip
        return m

    def elaborate_model(self, m, pins):
        """Do what the primitive does: both samples appear with the next rising edge."""
        m.domains.falling = ClockDomain(clk_edge="neg", local=True, reset_less=True)
        m.d.comb += ClockSignal("falling").eq(ClockSignal("ethernet"))
        early, late = Signal.like(self.rising), Signal.like(self.falling)
        m.d.falling += late.eq(pins)
        m.d.ethernet += [early.eq(pins), self.rising.eq(early), self.falling.eq(late)]


class DoubleRateOutput(wiring.Component):
    """Drive pins with other values in the two halves of a cycle of the domain ``ethernet``.

    Latency: 1 cycle in the model; the primitive has one more. All pins are equally late.
    Throughput: 2 bits per pin and cycle.

    Parameters
    ----------
    port : PortLike
        The pins, which are outputs.
    delay : int
        Picoseconds by which they are delayed.

    Members
    -------
    rising, falling : In(len(port))
        Values from the rising edge on, and from the falling edge on.
    """

    def __init__(self, port, *, delay=0):
        self.port = port
        self.delay = delay
        delay_taps(delay)
        super().__init__({"rising": In(len(port)), "falling": In(len(port))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = pins = io.Buffer("o", self.port)
        if getattr(platform, "device", None) is None:
            early, late = Signal.like(self.rising), Signal.like(self.falling)
            m.d.ethernet += [early.eq(self.rising), late.eq(self.falling)]
            m.d.comb += pins.o.eq(Mux(ClockSignal("ethernet"), early, late))
            return m
        for n in range(len(self.port)):
            driven = Signal(name=f"driven_{n}")
            m.submodules[f"cell_{n}"] = Instance(
                "ODDRX1F", i_D0=self.rising[n], i_D1=self.falling[n], i_RST=Const(0),
                i_SCLK=ClockSignal("ethernet"), o_Q=driven,
            )  # fmt: skip
            m.d.comb += pins.o[n].eq(delayed(m, driven, self.delay))
        return m


class Rgmii(wiring.Component):
    """Lead the interface of a MAC to the pins of a PHY that has RGMII at 1000BASE-T.

    The low half of a byte is on the pins at the rising edge of their clock, the high half at the
    falling edge. ``ctrl`` is high at the rising edge while there is a byte, and differs at the
    falling edge if the byte is damaged. Everything is in the clock domain ``ethernet``, whose clock
    must be :attr:`clock`, the one that comes from the PHY: it also sends the data to the PHY.

    Latency: that of the pins, 1 cycle from the PHY, and 1 or 2 cycles to it. Throughput: 1 byte per
    cycle.

    Parameters
    ----------
    pads : object
        Ports of :mod:`amaranth.lib.io`: ``rx_clk``, ``rx_ctrl``, ``rx_data``, ``tx_clk``,
        ``tx_ctrl`` and ``tx_data``.
    tx_delay, rx_delay : int
        Picoseconds by which the clock to the PHY, and the data from the PHY, are delayed. RGMII
        wants 1.5 to 2 ns between data and clock, which the PHY, the board or this adds.

    Members
    -------
    gmii : In(GmiiSignature())
    clock : Out(1)
        The clock from the PHY.
    """

    def __init__(self, pads, *, tx_delay=2000, rx_delay=0):
        self.pads = pads
        self.tx_delay, self.rx_delay = tx_delay, rx_delay
        super().__init__({"gmii": In(GmiiSignature()), "clock": Out(1)})

    def elaborate(self, platform):
        m = Module()
        gmii, pads = self.gmii, self.pads
        m.submodules.rx_clk = clock = io.Buffer("i", pads.rx_clk)
        m.submodules.rx_data = rx_data = DoubleRateInput(pads.rx_data, delay=self.rx_delay)
        m.submodules.rx_ctrl = rx_ctrl = DoubleRateInput(pads.rx_ctrl, delay=self.rx_delay)
        m.submodules.tx_data = tx_data = DoubleRateOutput(pads.tx_data)
        m.submodules.tx_ctrl = tx_ctrl = DoubleRateOutput(pads.tx_ctrl)
        m.submodules.tx_clk = tx_clk = DoubleRateOutput(pads.tx_clk, delay=self.tx_delay)
        m.d.comb += [
            self.clock.eq(clock.i),
            gmii.rx_data.eq(Cat(rx_data.rising, rx_data.falling)),
            gmii.rx_valid.eq(rx_ctrl.rising),
            gmii.rx_error.eq(rx_ctrl.rising ^ rx_ctrl.falling),
            Cat(tx_data.rising, tx_data.falling).eq(gmii.tx_data),
            tx_ctrl.rising.eq(gmii.tx_enable),
            tx_ctrl.falling.eq(gmii.tx_enable ^ gmii.tx_error),
            tx_clk.rising.eq(1),
            tx_clk.falling.eq(0),
        ]
        return m


class GmiiReceiver(wiring.Component):
    """MAC receiver: frames out of what a PHY receives.

    A PHY may swallow bytes of the preamble, so any number of them is taken. A frame is correct if
    it has 64 to 1,518 bytes, the PHY has read all of them, and the checksum fits. The checksum is
    the CRC of the link's frames (:mod:`hdl.link.frames`). What begins with no preamble is skipped.

    Latency: 2 cycles from a byte to the same byte at ``frame``, and from the first cycle without
    ``valid`` to ``good`` or ``bad``. Throughput: 1 byte per cycle.

    Members
    -------
    data : In(8)
    valid, error : In(1)
        What the PHY receives, see :class:`hdl.ethernet.frames.GmiiSignature`.
    frame : Out(ReceivedFrame())
    """

    latency = 2

    def __init__(self):
        super().__init__(
            {"data": In(8), "valid": In(1), "error": In(1), "frame": Out(ReceivedFrame())}
        )

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte, valid, error = Signal(8), Signal(), Signal()
        state = Signal(CRC_BITS)
        place = Signal.like(frame.index)  # of the byte, where LONGEST_BYTES + FCS_BYTES is too far
        damaged = Signal()
        fits = (place >= LEAST_BYTES + FCS_BYTES) & ~damaged
        m.d.sync += [
            byte.eq(self.data), valid.eq(self.valid), error.eq(self.error),
            frame.byte.eq(byte), frame.strobe.eq(0), frame.good.eq(0), frame.bad.eq(0),
        ]  # fmt: skip
        with m.FSM():
            with m.State("PREAMBLE"):
                m.d.sync += [place.eq(0), state.eq(~0), damaged.eq(0)]
                with m.If(valid & (error | ((byte != PREAMBLE) & (byte != SFD)))):
                    m.next = "SKIP"
                with m.Elif(valid & (byte == SFD)):
                    m.next = "FRAME"
            with m.State("FRAME"):
                with m.If(valid):
                    m.d.sync += [state.eq(crc_step(state, byte)), damaged.eq(damaged | error)]
                    with m.If(place == LONGEST_BYTES + FCS_BYTES):
                        m.d.sync += damaged.eq(1)
                    with m.Else():
                        m.d.sync += [place.eq(place + 1), frame.index.eq(place), frame.strobe.eq(1)]
                with m.Else():
                    good = fits & (state == RESIDUE)
                    m.d.sync += [frame.good.eq(good), frame.bad.eq(~good)]
                    m.next = "PREAMBLE"
            with m.State("SKIP"):
                with m.If(~valid):
                    m.next = "PREAMBLE"
        return m


class GmiiTransmitter(wiring.Component):
    """MAC transmitter: frames to a PHY.

    A frame begins when its first byte is there, and its bytes are taken in successive cycles. Where
    one is missing, ``error`` makes the other side drop the frame. Zeros are added to frames that
    are shorter than 60 bytes.

    Latency: 10 cycles from the first byte of a frame to the same byte at ``data``, behind the
    preamble. Throughput: a frame of n bytes takes ``max(n, 60) + 24`` cycles.

    Members
    -------
    i : In(stream.Signature(FrameByte))
    data : Out(8)
    enable, error : Out(1)
        What the PHY sends, from registers; see :class:`hdl.ethernet.frames.GmiiSignature`.
    """

    latency = 2 + PREAMBLE_BYTES + 1
    #: Cycles that a frame takes besides those of its bytes.
    overhead = PREAMBLE_BYTES + 1 + FCS_BYTES + GAP_BYTES

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(FrameByte)),
                "data": Out(8),
                "enable": Out(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        byte = self.i.payload.byte
        left = Signal(range(GAP_BYTES), init=PREAMBLE_BYTES - 1)
        place = Signal(range(LONGEST_BYTES))
        state = Signal(CRC_BITS)
        is_long = Signal()  # the frame needs no padding behind this byte

        def put(byte):
            m.d.sync += [self.data.eq(byte), self.enable.eq(1)]

        def body(byte, done):
            put(byte)
            m.d.sync += [
                state.eq(crc_step(state, byte)), place.eq(place + 1),
                is_long.eq(is_long | (place == LEAST_BYTES - 2)), left.eq(FCS_BYTES - 1),
            ]  # fmt: skip
            with m.If(done):
                m.next = "CHECKSUM"

        m.d.sync += [self.enable.eq(0), self.error.eq(0), self.data.eq(0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [left.eq(PREAMBLE_BYTES - 1), place.eq(0), state.eq(~0), is_long.eq(0)]
                with m.If(self.i.valid):
                    m.next = "PREAMBLE"
            with m.State("PREAMBLE"):
                put(PREAMBLE)
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "START"
            with m.State("START"):
                put(SFD)
                m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += self.error.eq(~self.i.valid)
                ends = self.i.valid & self.i.payload.last
                with m.If(ends & ~is_long):
                    m.next = "PADDING"
                body(byte, ends & is_long)
            with m.State("PADDING"):
                body(C(0, 8), is_long)
            with m.State("CHECKSUM"):
                put(~state[:8])
                m.d.sync += [state.eq(state >> 8), left.eq(left - 1)]
                with m.If(left == 0):
                    m.d.sync += left.eq(GAP_BYTES - 2)  # the last byte of the gap is IDLE
                    m.next = "GAP"
            with m.State("GAP"):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.next = "IDLE"
        return m
