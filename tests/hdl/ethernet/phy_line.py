# SPDX-License-Identifier: Apache-2.0
"""The line at the pins of a board's PHY, in Amaranth's simulator."""

from sim.ethernet.frames import read_line

__all__ = ["PhyLine"]


class PhyLine:
    """Both directions of a line, a byte per cycle.

    Parameters
    ----------
    gmii : GmiiSignature
        The port of the board.

    Attributes
    ----------
    to_board : list
        What follows on the line to the board, an entry per cycle: a byte, or None.
    frames : list
        Frames that came from the board, without preamble and checksum; None for damaged ones.
    stamps : list of int
        Cycles in which they had ended.
    cycle : int
        Cycles so far.
    """

    def __init__(self, gmii):
        self.gmii = gmii
        self.to_board, self.frames, self.stamps = [], [], []
        self.cycle = 0
        self._coming = bytearray()  # bytes from the board without a gap

    def put(self, line, gap=12):
        """Append a frame with preamble and checksum, and a gap."""
        self.to_board += [*line, *[None] * gap]

    def drive(self, ctx):
        """Drive and read the pins of one cycle, before its clock edge."""
        gmii = self.gmii
        byte = self.to_board.pop(0) if self.to_board else None
        ctx.set(gmii.rx_valid, byte is not None)
        ctx.set(gmii.rx_data, byte or 0)
        if ctx.get(gmii.tx_enable):
            assert not ctx.get(gmii.tx_error)
            self._coming.append(ctx.get(gmii.tx_data))
        elif self._coming:
            self.frames.append(read_line(bytes(self._coming)))
            self.stamps.append(self.cycle)
            self._coming.clear()
        self.cycle += 1
