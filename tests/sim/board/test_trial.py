# SPDX-License-Identifier: Apache-2.0
"""Bitstreams that are read back into logic."""

from contextlib import closing, suppress
from itertools import product
import re

import pytest

from hdl.boards.bitstream import make_bitstream
from hdl.boards.table import find_board
from hdl.presets import PRESETS
from sim.board.board import SimulatedBoard
from sim.board.conversation import BoardConversation, Undelivered
from sim.board.trial import build_bitstream, pins_of, read_bitstream
from sim.board.unpacked import expression

CONSTRAINTS = """
IO_LOC "uart_0__rx__io" 18;
IO_PORT "uart_0__rx__io" PULL_MODE=UP;
IO_LOC "uart_0__tx__io" 17;
IO_LOC "led_0__io" 10;
IO_LOC "clk27_0__io" 52;
"""


def test_pins_are_those_of_the_constraints():
    assert pins_of(CONSTRAINTS) == {"clk": "52", "rx": "18", "tx": "17", "led": "10"}


@pytest.mark.parametrize("table", [0, 0xFFFF, 0x8000, 0x0001, 0x6996, 0xA0AA, 0x505A, 0x3CAA])
@pytest.mark.parametrize("constant", [{}, {2: 1}, {0: 0, 3: 1}, {0: 1, 1: 1, 2: 0, 3: 0}])
def test_the_expression_of_a_table_is_the_table(table, constant):
    pins = [f"1'b{constant[n]}" if n in constant else f"i{n}" for n in range(4)]
    text = expression(table, pins)
    for bits in product((0, 1), repeat=4):
        if any(bits[n] != value for n, value in constant.items()):
            continue
        assert evaluated(text, bits) == table >> sum(b << n for n, b in enumerate(bits)) & 1


def evaluated(text, bits):
    """Return the value of an expression of :func:`expression`."""
    text = text.strip()
    if text.startswith("("):
        inner = text[1:-1]
        select, _, rest = inner.partition(" ? ")
        depth = 0
        for at, letter in enumerate(rest):
            depth += (letter == "(") - (letter == ")")
            if depth == 0 and rest[at : at + 3] == " : ":
                return evaluated(rest[:at] if evaluated(select, bits) else rest[at + 3 :], bits)
    if text.startswith("~"):
        return 1 - evaluated(text[1:], bits)
    return int(text[-1]) if text.startswith("1'b") else bits[int(text[1:])]


@pytest.mark.parametrize("name", ["ulx3s-12f", "ecpix5-45f"])
def test_a_device_whose_bitstreams_nobody_reads_is_named(name, tmp_path):
    pytest.importorskip("amaranth_boards")
    with pytest.raises(ValueError, match="cannot be read back into logic; those of tang-nano-9k"):
        read_bitstream(find_board(name), tmp_path)


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """The smallest accelerator on its board: board and folder of the bitstream."""
    pytest.importorskip("apycula")
    board, folder = find_board("tang-nano-9k"), tmp_path_factory.mktemp("trial")
    make_bitstream(board, PRESETS["board-small"], folder)
    return board, folder


def joined(board, folder, tuples):
    library = build_bitstream(board, read_bitstream(board, folder))
    with closing(SimulatedBoard(library)) as simulated:
        return BoardConversation(simulated, board).join(folder / "bundle", tuples)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_bitstream_joins_as_the_reference_does(routed):
    course = joined(*routed, 10_000)
    assert course.differences == 0
    assert len(course.results) > 10_000 * course.result_bytes


#: Faults in the text of a bitstream: what is replaced, the first time that it stands there.
FAULTS = {
    "a stored key": (r"(rows\[\w+\[13:4\]\]\[8:0\] <= )(\w+\[8:0\])", r"\1~\2"),
    "a bit of a small memory": (r"(0\[\{[^}]*\}\] <= )(\w+)", r"\1~\2"),
}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_bitstream_is_noticed(routed, fault):
    board, folder = routed
    wrong, count = re.subn(*FAULTS[fault], read_bitstream(board, folder))
    assert count
    library = build_bitstream(board, wrong)
    with closing(SimulatedBoard(library)) as simulated:
        run = BoardConversation(simulated, board)
        with suppress(Undelivered):
            assert run.join(folder / "bundle", 60).differences > 0
