# SPDX-License-Identifier: Apache-2.0
"""A simulated board with Ethernet: frames in and out at the pins of its PHY."""

from .board import SimulatedBoard

__all__ = ["SimulatedEthernetBoard"]


class SimulatedEthernetBoard(SimulatedBoard):
    """Simulation of a board's circuit with Ethernet, clocked by :meth:`exchange_frames`.

    Cycles are those of the PHY, 125 million a second; a byte of a frame takes one of them. Clocks
    stand still between two calls.

    Parameters
    ----------
    library : path-like
        What :func:`sim.board.library.build_board` has made of a board with Ethernet.
    seed : int
        As for :class:`sim.board.board.SimulatedBoard`.
    """

    def exchange_frames(self, frames, cycles):
        """Let cycles pass in which ``frames`` are sent to the board, with the shortest gaps.

        Parameters
        ----------
        frames : list of bytes
            Frames with preamble and checksum.
        cycles : int
            Most cycles to run.

        Returns
        -------
        tuple of (int, list of bytes)
            Number of frames that are on the line or have passed it, and frames that came.
        """
        records = [len(frame).to_bytes(2, "little") + frame for frame in frames]
        taken, heard = self.exchange(b"".join(records), cycles)
        sent = 0
        while taken:
            taken -= len(records[sent])
            sent += 1
        found, at = [], 0
        while at < len(heard):
            size = int.from_bytes(heard[at : at + 2], "little")
            found.append(heard[at + 2 : at + 2 + size])
            at += 2 + size
        return sent, found
