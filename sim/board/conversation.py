# SPDX-License-Identifier: Apache-2.0
"""A host and a simulated board in one process, whose only clock is that of the board.

Two runs with the same seeds are the same, byte for byte, on every machine. A server with a program
behind it (:mod:`sim.board.server`) is what a user meets; its course depends on the machine.
"""

from dataclasses import dataclass

import numpy as np

from host.devices.link import HostEndpoint, Timing
from host.devices.linked import SLOTS, words_to_bytes
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.link.noise import Noise
from sim.scenarios import Scenario, expected_results

__all__ = ["BoardConversation", "Course", "Undelivered", "input_words"]

#: Bytes of the line that pass between two looks of the host at it. At 1 Mbaud they take 0.1 ms; a
#: USB adapter looks every 0.125 to 1 ms.
LOOK = 10
#: Bytes that the host has ready at least, so that the line never waits for it.
AHEAD = 2 * LOOK

#: Values of a key. In a window of 126 tuples, a tuple meets a third of a pair on average. With its
#: star it has four thirds of a result of three bytes: as many bytes as it takes itself.
VALUES = 378
#: Times that a run reports its progress.
REPORTS = 10


class Undelivered(AssertionError):
    """Timeout: not all words have come within the cycles that were allowed."""


@dataclass(frozen=True)
class Course:
    """What had to come in a run, what came, and how.

    Parameters
    ----------
    words, results, found : bytes
        Input words, the result words of the reference join, and those of the board.
    result_bytes : int
        Bytes of a result word.
    cycles : int
        Cycles of the board, from its reset to the last result.
    line : float
        Bytes that a line carries in these cycles.
    counters : LinkCounters
        Of the host's end of the link.
    damaged : int
        Bytes that were damaged.
    """

    words: bytes
    results: bytes
    found: bytes
    result_bytes: int
    cycles: int
    line: float
    counters: object
    damaged: int

    @property
    def shares(self):
        """Shares of the lines that carried words: to the board, and to the host."""
        return len(self.words) / self.line, len(self.results) / self.line

    @property
    def differences(self):
        """Result words that are lost, repeated, changed or out of place."""
        size, most = self.result_bytes, max(len(self.found), len(self.results))
        return sum(
            self.found[at : at + size] != self.results[at : at + size]
            for at in range(0, most, size)
        )


def input_words(manifest, tuples, seed, *, values=VALUES):
    """Return the input words of a join of random tuples, whose keys have so many values."""
    rng = np.random.default_rng(seed)
    codec = WordCodec(manifest)
    keys = {"x": rng.integers(0, values, tuples)}
    some = codec.pack_tuples(rng.integers(0, 2, tuples), keys, np.zeros(tuples, np.int64))
    return np.concatenate([codec.pack_control("CLEAR"), some, codec.pack_control("FLUSH")])


class BoardConversation:
    """Exchanges words with a simulated board over a line that can damage bytes.

    The host's end of the link has the settings and times that ``serial:`` gives it.

    Parameters
    ----------
    simulated : SimulatedBoard
        The board.
    board : Board
        What it is: its clock and its baud rate.
    damage : float
        Share of the bytes that are flipped, lost, doubled, or have another one inserted before
        them, in each direction.
    seed : int
        Of the damage and of the session.

    Attributes
    ----------
    host : HostEndpoint
        The host's end.
    noises : list of Noise
        The line to the board and the line to the host.
    """

    def __init__(self, simulated, board, *, damage=0.0, seed=1):
        self.simulated, self.board = simulated, board
        self.noises = [Noise(damage, 2 * seed + n) for n in range(2)]
        timing = Timing.at(board.baud / 10, slots=SLOTS)
        self.host = HostEndpoint(seed, timing=timing)
        self._outgoing = b""

    def step(self):
        """Let :data:`LOOK` bytes pass on both lines."""
        simulated, host = self.simulated, self.host
        now = simulated.cycle / (self.board.mhz * 1e6)
        if len(self._outgoing) < AHEAD:
            more = host.transmit(now, AHEAD - len(self._outgoing))
            self._outgoing += self.noises[0](more)
        taken, heard = simulated.exchange(self._outgoing, LOOK * 10 * self.board.divisor)
        self._outgoing = self._outgoing[taken:]
        host.receive(self.noises[1](heard), simulated.cycle / (self.board.mhz * 1e6))

    def exchange(self, words, size, *, cycles, progress=lambda done: None):
        """Send words to the board until so many bytes of results have come.

        Parameters
        ----------
        words : bytes
            Input words, as they pass the link.
        size : int
            Bytes of result words to wait for.
        cycles : int
            Cycles of the board that this may take.
        progress : callable
            Called with the number of bytes that have come, each time that some have.

        Returns
        -------
        bytes
            Result words, as they pass the link; all that have come, perhaps more than ``size``.

        Raises
        ------
        Undelivered
            If that takes more cycles.
        """
        host, got = self.host, bytearray()
        end, offered = self.simulated.cycle + cycles, 0
        while len(got) < size or offered < len(words) or not host.sender.idle:
            if self.simulated.cycle > end:
                raise Undelivered(
                    f"After {cycles:,} cycles, {offered} of {len(words)} bytes were offered, and "
                    f"{len(got)} of {size} bytes have come ({host.counters()})"
                )
            if host.is_open:
                room = host.sender.room
                offered += host.sender.offer(words[offered : offered + room])
                more = host.receiver.take(host.receiver.waiting)
                if more:
                    got += more
                    progress(len(got))
            self.step()
        return bytes(got)

    def join(self, bundle, tuples, *, seed=1, report=lambda text: None):
        """Join random tuples on the board, and the same by the reference join.

        Parameters
        ----------
        bundle : path-like
            Folder of the bundle that the board was made with.
        tuples, seed : int
            How many tuples, and the seed of their values.
        report : callable
            Receives lines of text about the progress.

        Returns
        -------
        Course

        Raises
        ------
        Undelivered
            If not all results have come within a hundred times the cycles that the line needs.
        """
        manifest = Manifest.load(bundle)
        asked = input_words(manifest, tuples, seed)
        answer = expected_results(bundle, Scenario(asked, marks=2))  # CLEAR and FLUSH
        words = words_to_bytes(asked, manifest.input_word)
        results = words_to_bytes(answer, manifest.result_word)
        told = 0

        def progress(done):
            nonlocal told
            if done * REPORTS // len(results) > told:
                told = done * REPORTS // len(results)
                report(f"board: {done:,} of {len(results):,} bytes of results")

        byte = 10 * self.board.divisor
        most = 100 * (len(words) + len(results)) * byte
        found = self.exchange(words, len(results), cycles=most, progress=progress)
        return Course(
            words, results, found,
            result_bytes=-(-manifest.result_word.bits // 8),
            cycles=self.simulated.cycle,
            line=self.simulated.cycle / byte,
            counters=self.host.counters(),
            damaged=sum(noise.damaged for noise in self.noises),
        )  # fmt: skip
