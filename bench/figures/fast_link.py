# SPDX-License-Identifier: Apache-2.0
"""How many tuples pass the Ethernet of a board, and what a bad network makes of them."""

from contextlib import closing

import numpy as np

from hdl.boards.top import ETHERNET_MHZ
from host.devices.linked import words_of_bytes, words_to_bytes
from host.protocol.manifest import Manifest
from sim.board.conversation import Course, input_words
from sim.board.ethernet_board import SimulatedEthernetBoard
from sim.board.ethernet_conversation import EthernetConversation
from sim.scenarios import Scenario, expected_results
from sim.scenarios.answers import canonical

from .board import built
from .registry import Result, figure

__all__ = ["differences", "tuples_per_s"]

BOARD, PRESET = "ecpix5-45f", "board-fast"
#: Values of a key. A tuple and its star have two results of four bytes on average: as many bytes as
#: the eight that the tuple takes itself.
VALUES = 3_900
TUPLES = 100_000
#: Share of the frames that a bad network loses, damages or doubles, each way.
DAMAGE = 0.01


def in_order(manifest, results):
    """Return result words as bytes, in an order that does not depend on that of an index."""
    rows = canonical(manifest, results, free=False)
    return words_to_bytes(np.array(rows, np.uint64), manifest.result_word)


def run_fast(report, *, tuples, values=VALUES, damage=0.0, seed=1):
    """Run a join on the simulated board; return its course and the conversation."""
    board, folder, library = built(BOARD, PRESET, report)
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
    course, run = run_fast(report, tuples=TUPLES)
    if course.differences:
        raise AssertionError("a clean network must change no word")
    seconds = course.cycles / (ETHERNET_MHZ * 1e6)
    note = (
        f"{BOARD}, {PRESET}: {TUPLES:,} tuples of 8 bytes and "
        f"{len(course.results) // course.result_bytes:,} results of {course.result_bytes} bytes in "
        f"{course.cycles:,} cycles at the pins of the PHY; link at {run.board.mhz} MHz, of which "
        f"{course.shares[0]:.4f} carried words in and {course.shares[1]:.4f} out; "
        f"{run.card.frames[0]:,} frames in, {run.card.frames[1]:,} out"
    )
    return Result(TUPLES / seconds, notes=(note,))


@figure("link.fast.errors_1pct.differences", unit="words", goal="<= 0")
def differences(report):
    """Results that are lost, repeated, changed or out of place when 1 % of frames are bad.

    A third of these frames is lost, a third damaged and a third doubled, each way; the same join
    and the same board as in ``link.fast.tuples_per_s``, compared word by word with the reference
    join.
    """
    course, run = run_fast(report, tuples=TUPLES, damage=DAMAGE)
    seconds = course.cycles / (ETHERNET_MHZ * 1e6)
    note = (
        f"{BOARD}, {PRESET}: {len(course.results) // course.result_bytes:,} results, "
        f"{course.damaged} of {sum(run.card.frames):,} frames lost, damaged or doubled, "
        f"{course.counters.repeated:,} of {course.counters.frames_out:,} frames of the host "
        f"repeated, {course.counters.timeouts} timeouts; {TUPLES / seconds:,.0f} tuples/s"
    )
    return Result(course.differences, notes=(note,))
