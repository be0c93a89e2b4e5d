# SPDX-License-Identifier: Apache-2.0
"""What the link of a board carries at the pins of its UART, and what it makes of damaged bytes."""

from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host.devices.linked import words_to_bytes
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.board.board import SimulatedBoard
from sim.board.conversation import BoardConversation
from sim.board.library import build_board
from sim.scenarios import Scenario, expected_results

from .registry import Result, figure

__all__ = ["Course", "built", "differences", "efficiency", "input_words"]

BOARD, PRESET = "ulx3s-12f", "board-small"
#: Values of a key. In a window of 126 tuples, a tuple meets a third of a pair on average. With its
#: star it has four thirds of a result of three bytes: as many bytes as it takes itself.
VALUES = 378
#: Tuples with a clean line and with a bad one.
CLEAN_TUPLES, BAD_TUPLES = 12_000, 100_000
#: Share of the bytes that a bad line damages, each way.
DAMAGE = 0.01
#: Times that a run reports its progress.
REPORTS = 10


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


@cache
def built(name, preset, report):
    """Return a board, its bundle with the accelerator of a preset, and its library."""
    board, parameters = find_board(name), PRESETS[preset]
    folder = Path("build") / "figures" / f"{name}-{preset}"
    manifest = write_bundle(parameters, folder)
    return board, folder, build_board(board, parameters, digest=manifest["hash"], report=report)


def input_words(manifest, tuples, seed, *, values=VALUES):
    """Return the input words of a join of random tuples, whose keys have so many values."""
    rng = np.random.default_rng(seed)
    codec = WordCodec(manifest)
    keys = {"x": rng.integers(0, values, tuples)}
    some = codec.pack_tuples(rng.integers(0, 2, tuples), keys, np.zeros(tuples, np.int64))
    return np.concatenate([codec.pack_control("CLEAR"), some, codec.pack_control("FLUSH")])


def run_board(report, *, tuples, damage=0.0, seed=1):
    """Run a join on the simulated board; return a :class:`Course`."""
    board, folder, library = built(BOARD, PRESET, report)
    manifest = Manifest.load(folder)
    asked = input_words(manifest, tuples, seed)
    answer = expected_results(folder, Scenario(asked, marks=2))  # CLEAR and FLUSH
    words = words_to_bytes(asked, manifest.input_word)
    results = words_to_bytes(answer, manifest.result_word)
    told = 0

    def progress(done):
        nonlocal told
        if done * REPORTS // len(results) > told:
            told = done * REPORTS // len(results)
            report(f"board: {done:,} of {len(results):,} bytes of results")

    with closing(SimulatedBoard(library, seed=seed)) as simulated:
        run = BoardConversation(simulated, board, damage=damage, seed=seed)
        byte = 10 * board.divisor
        most = 100 * (len(words) + len(results)) * byte
        found = run.exchange(words, len(results), cycles=most, progress=progress)
        return Course(
            words, results, found,
            result_bytes=-(-manifest.result_word.bits // 8),
            cycles=simulated.cycle,
            line=simulated.cycle / byte,
            counters=run.host.counters(),
            damaged=sum(noise.damaged for noise in run.noises),
        )  # fmt: skip


@figure("link.uart.efficiency", unit="of 1", goal=">= 0.9")
def efficiency(report):
    """Share of the line of a board's UART that carries words, both ways at once, the worse one.

    The board's top under Verilator, with the divisor of the board; cycles are counted at the pins,
    from the reset to the last result. Tuples and their results take as many bytes.
    """
    course = run_board(report, tuples=CLEAN_TUPLES)
    if course.differences:
        raise AssertionError("a clean line must change no word")
    note = (
        f"{BOARD}, {PRESET}: {CLEAN_TUPLES:,} tuples in {course.cycles:,} cycles; "
        f"{course.shares[0]:.4f} in, {course.shares[1]:.4f} out"
    )
    return Result(min(course.shares), notes=(note,))


@figure("link.errors_1pct.differences", unit="words", goal="<= 0")
def differences(report):
    """Result words that are lost, repeated, changed or out of place when 1 % of bytes are damaged.

    A join of 100,000 tuples on a board's top under Verilator, with its UART at the pins and damage
    both ways; compared word by word with the reference join.
    """
    course = run_board(report, tuples=BAD_TUPLES, damage=DAMAGE)
    note = (
        f"{BOARD}, {PRESET}: {len(course.results) // course.result_bytes:,} result words, "
        f"{course.damaged:,} bytes damaged, {course.counters.repeated:,} of "
        f"{course.counters.frames_out:,} frames of the host repeated, "
        f"{course.counters.timeouts} timeouts, {course.cycles:,} cycles; "
        f"{course.shares[0]:.3f} of the line in, {course.shares[1]:.3f} out"
    )
    return Result(course.differences, notes=(note,))
