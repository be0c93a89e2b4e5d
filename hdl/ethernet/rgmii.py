# SPDX-License-Identifier: Apache-2.0
"""A PHY at the pins of an ECP5: RGMII, whose data change at both edges of their clock."""

from amaranth import *
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from .double_rate import DoubleRateInput, DoubleRateOutput
from .frames import GmiiSignature

__all__ = ["Rgmii"]


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
