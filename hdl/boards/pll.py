# SPDX-License-Identifier: Apache-2.0
"""Another clock than that of a board's oscillator, on an ECP5."""

from fractions import Fraction

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pll", "pll_divisors"]

#: Divisors go up to this.
MOST = 128
#: Frequencies in MHz that the oscillator of the PLL, and its phase detector, can have.
OSCILLATOR_MHZ = (400, 800)
DETECTOR_MHZ = (10, 400)


def pll_divisors(source_mhz, mhz):
    """Return the divisors of a PLL: of its input, of its feedback and of its output.

    Raises
    ------
    ValueError
        If no divisors give exactly this clock.
    """
    ratio = Fraction(mhz).limit_denominator(1000) / Fraction(source_mhz).limit_denominator(1000)
    source, feedback = ratio.denominator, ratio.numerator
    fitting = [
        output for output in range(1, MOST + 1)
        if OSCILLATOR_MHZ[0] <= output * mhz <= OSCILLATOR_MHZ[1]
    ]  # fmt: skip
    detector = source_mhz / source
    in_range = DETECTOR_MHZ[0] <= detector <= DETECTOR_MHZ[1]
    if not fitting or not in_range or max(source, feedback) > MOST:
        raise ValueError(
            f"A PLL cannot make a clock of {mhz:g} MHz from one of {source_mhz:g} MHz; choose "
            "another clock, whose ratio has small numbers"
        )
    # In the middle of the range, the oscillator is farthest from both limits.
    middle = sum(OSCILLATOR_MHZ) / 2
    return source, feedback, min(fitting, key=lambda output: abs(output * mhz - middle))


class Pll(wiring.Component):
    """Make a clock from another one.

    Latency, throughput: not applicable. The clock is not to be used before ``locked``.

    Parameters
    ----------
    source_mhz, mhz : float
        Frequencies of both.

    Members
    -------
    source : In(1)
    clock : Out(1)
    locked : Out(1)
    """

    def __init__(self, source_mhz, mhz):
        self.source_mhz, self.mhz = source_mhz, mhz
        self.divisors = pll_divisors(source_mhz, mhz)
        super().__init__({"source": In(1), "clock": Out(1), "locked": Out(1)})

    def elaborate(self, platform):
        m = Module()
        source, feedback, output = self.divisors
        m.submodules.cell = Instance(
            "EHXPLLL",
            p_CLKI_DIV=source, p_CLKFB_DIV=feedback, p_CLKOP_DIV=output, p_FEEDBK_PATH="CLKOP",
            p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=output - 1, p_CLKOP_FPHASE=0,
            a_FREQUENCY_PIN_CLKI=str(self.source_mhz), a_FREQUENCY_PIN_CLKOP=str(self.mhz),
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8",
            i_CLKI=self.source, i_CLKFB=self.clock, i_RST=Const(0), i_STDBY=Const(0),
            i_PHASESEL0=Const(0), i_PHASESEL1=Const(0), i_PHASEDIR=Const(1), i_PHASESTEP=Const(1),
            i_PHASELOADREG=Const(1), i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0),
            o_CLKOP=self.clock, o_LOCK=self.locked,
        )  # fmt: skip
        return m
