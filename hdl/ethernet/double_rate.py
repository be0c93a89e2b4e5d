# SPDX-License-Identifier: Apache-2.0
"""Pins that change at both edges of a clock, on an ECP5; without a device, as a model."""

from amaranth import *
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["DoubleRateInput", "DoubleRateOutput", "delay_taps"]

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
