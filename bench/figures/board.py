# SPDX-License-Identifier: Apache-2.0
"""What the link of a board carries at the pins of its UART, and what it makes of damaged bytes."""

from contextlib import closing
from functools import cache
from pathlib import Path

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from sim.board.board import SimulatedBoard
from sim.board.conversation import BoardConversation
from sim.board.library import build_board

from .registry import Result, figure

__all__ = ["built", "differences", "efficiency"]

BOARD, PRESET = "ulx3s-12f", "board-small"
#: Tuples with a clean line and with a bad one.
CLEAN_TUPLES, BAD_TUPLES = 12_000, 100_000
#: Share of the bytes that a bad line damages, each way.
DAMAGE = 0.01


@cache
def built(name, preset, report):
    """Return a board, its bundle with the accelerator of a preset, and its library."""
    board, parameters = find_board(name), PRESETS[preset]
    folder = Path("build") / "figures" / f"{name}-{preset}"
    manifest = write_bundle(parameters, folder)
    return board, folder, build_board(board, parameters, digest=manifest["hash"], report=report)


def run_board(report, *, tuples, damage=0.0, seed=1):
    """Run a join on the simulated board; return its :class:`~sim.board.conversation.Course`."""
    board, bundle, library = built(BOARD, PRESET, report)
    with closing(SimulatedBoard(library, seed=seed)) as simulated:
        run = BoardConversation(simulated, board, damage=damage, seed=seed)
        return run.join(bundle, tuples, seed=seed, report=report)


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
