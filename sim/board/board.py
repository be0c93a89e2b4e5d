# SPDX-License-Identifier: Apache-2.0
"""A simulated board: bytes in and out at the pins of its UART, as many cycles as one asks for."""

import ctypes

__all__ = ["SimulatedBoard"]

#: Most bytes that one call of the library collects. It returns when so many have come.
ROOM = 1 << 16


class Done(ctypes.Structure):
    """Result of one call of ``board_exchange``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("taken", "made", "led", "busy")]


class SimulatedBoard:
    """Simulation of a board's circuit with its UART, clocked by calls of :meth:`exchange`.

    A byte takes ``10 * divisor`` cycles on either line of a UART. Nothing happens between two
    calls: the clock of the board stands still.

    Parameters
    ----------
    library : path-like
        What :func:`sim.board.library.build_board` has made.
    seed : int
        If it is not zero, registers that no reset sets start with random values.

    Attributes
    ----------
    led : bool
        Whether the LED is on: a session has begun.
    busy : bool
        Whether a byte was on either line at the end of the last call.
    bytes_in, bytes_out : int
        Bytes that were sent to the board, and that came from it.
    """

    def __init__(self, library, *, seed=0):
        self._library = ctypes.CDLL(str(library))
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        for name, result, arguments in [
            ("create", pointer, [number]),
            ("destroy", None, [pointer]),
            ("cycle", number, [pointer]),
            (
                "exchange",
                None,
                [pointer, ctypes.c_char_p, number, pointer, number, number, pointer],
            ),
        ]:
            function = getattr(self._library, f"board_{name}")
            function.restype, function.argtypes = result, arguments
        self._board = self._library.board_create(seed)
        self._heard = (ctypes.c_uint8 * ROOM)()
        self.led = self.busy = False
        self.bytes_in = self.bytes_out = 0

    def exchange(self, data, cycles):
        """Let cycles pass in which ``data`` is sent to the board.

        Parameters
        ----------
        data : bytes
            May be empty.
        cycles : int
            Most cycles to run. Fewer pass if 65,536 bytes have come before.

        Returns
        -------
        tuple of (int, bytes)
            Number of bytes of ``data`` that are on the line or have passed it, and bytes that came.

        Raises
        ------
        ValueError
            If the board was closed.
        """
        if self._board is None:
            raise ValueError("The simulated board is closed")
        done = Done()
        self._library.board_exchange(
            self._board, data, len(data), self._heard, ROOM, cycles, ctypes.byref(done)
        )
        self.led, self.busy = bool(done.led), bool(done.busy)
        self.bytes_in += done.taken
        self.bytes_out += done.made
        return done.taken, bytes(self._heard[: done.made])

    @property
    def cycle(self):
        """Cycles since the reset that followed the configuration."""
        if self._board is None:
            raise ValueError("The simulated board is closed")
        return self._library.board_cycle(self._board)

    def close(self):
        """Free the circuit; closing it again has no effect."""
        board, self._board = self._board, None
        if board is not None:
            self._library.board_destroy(board)
