# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.boards import bitstream
from hdl.boards.commands import add_commands
from hdl.installation import CommandParser


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return what the command hands to the flow, which is not run; and what it says."""
    made = []

    def make(board, parameters, folder, *, preset, seed):
        made.append(board)
        return {"resources": {}, "bitstream": "a.bit", "fmax_mhz": 60, "load": "load"}

    monkeypatch.setattr(bitstream, "make_bitstream", make)

    def call(*words):
        parser = CommandParser()
        add_commands(parser.add_subparsers())
        options = parser.parse_args(["bitstream", "--output", str(tmp_path / "out"), *words])
        assert options.run(options) == 0
        return made[-1]

    return call


def test_a_board_gets_the_addresses_that_are_asked_for(run, capsys):
    own = ["--mac", "02:00:00:00:00:07", "--ip", "10.0.0.7"]
    board = run("--board", "ecpix5-45f", *own)
    assert (board.ethernet.mac, board.ethernet.ip) == ("02:00:00:00:00:07", "10.0.0.7")
    assert board.ethernet.port == 21322
    assert "Open it: udp:10.0.0.7:21322?bundle=" in capsys.readouterr().out


def test_a_board_with_a_uart_has_no_addresses(run, capsys):
    run("--board", "ulx3s-12f")
    assert "Open it: serial:PATH?baud=1000000&bundle=" in capsys.readouterr().out
    with pytest.raises(ValueError, match="--ip is for a board with Ethernet, and ulx3s-12f has a"):
        run("--board", "ulx3s-12f", "--ip", "10.0.0.7")


def test_an_address_that_no_board_can_have_is_refused(run):
    with pytest.raises(ValueError, match="must be one of a device, not '224.0.0.1'"):
        run("--board", "ecpix5-45f", "--ip", "224.0.0.1")


def test_the_list_names_the_line_of_each_board(capsys):
    parser = CommandParser()
    add_commands(parser.add_subparsers())
    options = parser.parse_args(["boards"])
    assert options.run(options) == 0
    said = capsys.readouterr().out
    assert "UDP port 21322 of 192.168.1.50 (02:00:00:53:4a:01)" in said
    assert "UART, 1,000,000 baud, 8N1" in said
