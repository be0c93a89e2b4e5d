# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.installation import CommandParser
from sim.board.commands import add_command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ecpix5-45f", "--pty"], "--pty is not for ecpix5-45f, which has Ethernet; .* --udp"),
        (["ecpix5-45f", "--tcp", "0"], "--tcp is not for ecpix5-45f"),
        (["ecpix5-45f", "--unplug", "9"], "--unplug is not for ecpix5-45f"),
        (["ULX3S-12F", "--udp"], "--udp is not for ulx3s-12f, which has a UART"),
        (["ulx4s"], "no board 'ulx4s'"),
    ],
)
def test_a_board_is_served_only_where_its_line_can_be(words, message):
    parser = CommandParser()
    add_command(parser.add_subparsers(), print)
    options = parser.parse_args(["board", *words])
    with pytest.raises(ValueError, match=message):
        options.run(options)
