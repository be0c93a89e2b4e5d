# SPDX-License-Identifier: Apache-2.0
"""Figures of what surrounds an accelerator: links at the pins of boards, and the AXI shell."""

from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np

from hdl.boards.table import find_board
from hdl.boards.top import ETHERNET_MHZ
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from hdl.shells.axi import AxiOptions
from host.devices.linked import words_of_bytes, words_to_bytes
from host.protocol.manifest import Manifest
from sim.benches.axi_runner import run_axi_bench
from sim.board.board import SimulatedBoard
from sim.board.conversation import BoardConversation, Course, input_words
from sim.board.ethernet_board import SimulatedEthernetBoard
from sim.board.ethernet_conversation import EthernetConversation
from sim.board.library import build_board
from sim.scenarios import Scenario, expected_results
from sim.scenarios.answers import canonical

from .registry import Result, figure

__all__ = ["board_built", "run_board", "run_fast"]

# The UART of a board.

UART_BOARD = "ulx3s-12f", "board-small"
#: Tuples with a clean line and with a bad one.
CLEAN_TUPLES, BAD_TUPLES = 12_000, 100_000
#: Share of the bytes that a bad line damages, or of the frames that a bad network loses, damages or
#: doubles, each way.
DAMAGE = 0.01


@cache
def board_built(name, preset, report):
    """Return a board, its bundle with the accelerator of a preset, and its library."""
    board, parameters = find_board(name), PRESETS[preset]
    folder = Path("build") / "figures" / f"{name}-{preset}"
    manifest = write_bundle(parameters, folder)
    return board, folder, build_board(board, parameters, digest=manifest["hash"], report=report)


def run_board(report, *, tuples, damage=0.0, seed=1):
    """Run a join on the simulated board; return its :class:`~sim.board.conversation.Course`."""
    board, bundle, library = board_built(*UART_BOARD, report)
    with closing(SimulatedBoard(library, seed=seed)) as simulated:
        run = BoardConversation(simulated, board, damage=damage, seed=seed)
        return run.join(bundle, tuples, seed=seed, report=report)


@figure("link.uart.efficiency", unit="of 1", goal=">= 0.9")
def uart_efficiency(report):
    """Share of the line of a board's UART that carries words, both ways at once, the worse one.

    The board's top under Verilator, with the divisor of the board; cycles are counted at the pins,
    from the reset to the last result. Tuples and their results take as many bytes.
    """
    course = run_board(report, tuples=CLEAN_TUPLES)
    if course.differences:
        raise AssertionError("a clean line must change no word")
    note = (
        f"{', '.join(UART_BOARD)}: {CLEAN_TUPLES:,} tuples in {course.cycles:,} cycles; "
        f"{course.shares[0]:.4f} in, {course.shares[1]:.4f} out"
    )
    return Result(min(course.shares), notes=(note,))


@figure("link.errors_1pct.differences", unit="words", goal="<= 0")
def uart_differences(report):
    """Result words that are lost, repeated, changed or out of place when 1 % of bytes are damaged.

    A join of 100,000 tuples on a board's top under Verilator, with its UART at the pins and damage
    both ways; compared word by word with the reference join.
    """
    course = run_board(report, tuples=BAD_TUPLES, damage=DAMAGE)
    note = (
        f"{', '.join(UART_BOARD)}: {len(course.results) // course.result_bytes:,} result words, "
        f"{course.damaged:,} bytes damaged, {course.counters.repeated:,} of "
        f"{course.counters.frames_out:,} frames of the host repeated, "
        f"{course.counters.timeouts} timeouts, {course.cycles:,} cycles; "
        f"{course.shares[0]:.3f} of the line in, {course.shares[1]:.3f} out"
    )
    return Result(course.differences, notes=(note,))


# The Ethernet of a board.

FAST_BOARD = "ecpix5-45f", "board-fast"
#: Values of a key. A tuple and its star have two results of four bytes on average: as many bytes as
#: the eight that the tuple takes itself.
VALUES = 3_900
FAST_TUPLES = 100_000


def in_order(manifest, results):
    """Return result words as bytes, in an order that does not depend on that of an index."""
    rows = canonical(manifest, results, free=False)
    return words_to_bytes(np.array(rows, np.uint64), manifest.result_word)


def run_fast(report, *, tuples, values=VALUES, damage=0.0, seed=1):
    """Run a join on the simulated board; return its course and the conversation."""
    board, folder, library = board_built(*FAST_BOARD, report)
    manifest = Manifest.load(folder)
    asked = input_words(manifest, tuples, seed, values=values)
    answer = expected_results(folder, Scenario(asked, marks=2))  # CLEAR and FLUSH
    words = words_to_bytes(asked, manifest.input_word)
    results = in_order(manifest, answer)
    with closing(SimulatedEthernetBoard(library, seed=seed)) as simulated:
        run = EthernetConversation(simulated, board, damage=damage, seed=seed)
        # A byte takes less than three cycles of the PHY; the times of a link are up to 8 million.
        most = 100_000_000 + 100 * (len(words) + len(results))
        found = run.exchange(words, len(results), cycles=most)
        course = Course(
            words, results, in_order(manifest, words_of_bytes(found, manifest.result_word)),
            result_bytes=-(-manifest.result_word.bits // 8),
            cycles=simulated.cycle,
            line=simulated.cycle * board.mhz / ETHERNET_MHZ,  # bytes that the link can carry
            counters=run.host.counters(),
            damaged=run.card.damaged,
        )  # fmt: skip
    return course, run


@figure("link.fast.tuples_per_s", unit="tuples/s", goal=">= 5e6")
def tuples_per_s(report):
    """Tuples per second of a join whose words and results pass a board's Ethernet, both at once.

    The board's shell under Verilator with its two clocks, 125 MHz at the pins of the PHY (GMII),
    where cycles are counted, and 50 MHz of the link and the accelerator. Cycles from the reset to
    the last result, with the request of ARP, the greeting and the short frames of the beginning.
    All results are compared with the reference join.
    """
    course, run = run_fast(report, tuples=FAST_TUPLES)
    if course.differences:
        raise AssertionError("a clean network must change no word")
    seconds = course.cycles / (ETHERNET_MHZ * 1e6)
    note = (
        f"{', '.join(FAST_BOARD)}: {FAST_TUPLES:,} tuples of 8 bytes and "
        f"{len(course.results) // course.result_bytes:,} results of {course.result_bytes} bytes in "
        f"{course.cycles:,} cycles at the pins of the PHY; link at {run.board.mhz} MHz, of which "
        f"{course.shares[0]:.4f} carried words in and {course.shares[1]:.4f} out; "
        f"{run.card.frames[0]:,} frames in, {run.card.frames[1]:,} out"
    )
    return Result(FAST_TUPLES / seconds, notes=(note,))


@figure("link.fast.errors_1pct.differences", unit="words", goal="<= 0")
def fast_differences(report):
    """Results that are lost, repeated, changed or out of place when 1 % of frames are bad.

    A third of these frames is lost, a third damaged and a third doubled, each way; the same join
    and the same board as in ``link.fast.tuples_per_s``, compared word by word with the reference
    join.
    """
    course, run = run_fast(report, tuples=FAST_TUPLES, damage=DAMAGE)
    seconds = course.cycles / (ETHERNET_MHZ * 1e6)
    note = (
        f"{', '.join(FAST_BOARD)}: {len(course.results) // course.result_bytes:,} results, "
        f"{course.damaged} of {sum(run.card.frames):,} frames lost, damaged or doubled, "
        f"{course.counters.repeated:,} of {course.counters.frames_out:,} frames of the host "
        f"repeated, {course.counters.timeouts} timeouts; {FAST_TUPLES / seconds:,.0f} tuples/s"
    )
    return Result(course.differences, notes=(note,))


# The AXI shell, in cycles at the pins of the generated Verilog.

SHELL_PRESET = "tiny"


@cache
def shell_measured(inputs=1):
    """Return what the bench of the AXI shell has measured, after all its scenarios have passed."""
    options, name = AxiOptions(inputs=inputs), f"axi figures of {inputs} inputs"
    return run_axi_bench(PRESETS[SHELL_PRESET], name=name, options=options)


@figure("shell.axi.words_per_cycle", unit="words per cycle", goal=">= 1")
def words_per_cycle(report):
    """Words per cycle into and out of the AXI shell without pauses; the lesser of the two.

    In: 256 words that the accelerator drops, for it takes no others in every cycle. Out: 256 words
    of an accelerator whose results wait for the port. Counted at ``s_axis`` and ``m_axis`` under
    Verilator.
    """
    found = shell_measured()
    note = f"preset {SHELL_PRESET}: {found['in']:.4f} words per cycle in, {found['out']:.4f} out"
    return Result(min(found["in"], found["out"]), notes=(note,))


@figure("shell.axi.added_latency_cycles", unit="cycles", goal="<= 6")
def added_latency_cycles(report):
    """Cycles that the AXI shell adds, from a FLUSH at its pins to the mark at its pins.

    The ports of the accelerator inside are observed as well; what it takes itself does not count.
    """
    found = shell_measured()
    note = (
        f"preset {SHELL_PRESET}: {found['before']} in front of the accelerator, "
        f"{found['behind']} behind"
    )
    return Result(found["before"] + found["behind"], notes=(note,))


@figure("shell.axi.two_inputs.words_per_cycle", unit="tuples per cycle", goal=">= 0.99")
def merged_words_per_cycle(report):
    """Tuples per cycle into the AXI shell with two inputs, of both together, without pauses.

    256 tuples whose sides alternate, which the accelerator drops; the first three quarters are left
    out, while the queues of the merge fill. Counted at ``s_axis_r`` and ``s_axis_s`` under
    Verilator.
    """
    found = shell_measured(2)
    added = f"{found['before']} cycles in front of the accelerator, {found['behind']} behind"
    return Result(found["in"], notes=(f"preset {SHELL_PRESET}: {added}",))
