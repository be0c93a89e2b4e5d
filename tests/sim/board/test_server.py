# SPDX-License-Identifier: Apache-2.0
"""Unchanged devices of the host at a simulated board, over lines that are bad or break."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from hdl.presets import PRESETS
from host.devices import open_device
from host.devices.selftest import Outcome, self_test
from host.errors import DeviceError
from sim.board.commands import simulated_baud
from sim.board.ports import PseudoTerminal, TcpPort
from sim.board.server import BoardServer, line_rate, serving
from tests.host.device_contract import ask
from tests.host.small_bundles import FLUSH, configuration, expected, random_tuples, write_manifest

#: Baud rate whose timeouts are long enough for a simulation beside other tests.
BAUD = 115200


def script_of(parameters, count, seed):
    rng = np.random.default_rng(seed)
    tuples = random_tuples(parameters, rng, count, pace=0)
    return [*configuration(parameters), *tuples, FLUSH]


@pytest.fixture(params=["pty", "tcp"])
def port(request, tmp_path):
    return PseudoTerminal(tmp_path / "links" / "tty") if request.param == "pty" else TcpPort()


def uri_of(port, bundle, more=""):
    return f"{port.place}?baud={BAUD}&bundle={bundle}{more}"


@pytest.mark.few(1)
@pytest.mark.parametrize(("count", "damage"), [(40, 0.0), (60, 0.01)])
def test_a_join_passes_the_pins_of_a_board(board, port, bundle, parameters, count, damage):
    script = script_of(parameters, count, 1)
    with serving(board, port, damage=damage, seed=3) as server:
        with open_device(uri_of(port, bundle)) as device:
            assert ask(device, script) == expected(parameters, script)
            assert (device.link_counters().garbled > 0) == (damage > 0)
    assert (server.damaged > 0) == (damage > 0)
    assert server.unplugged == 0


@pytest.mark.few(1)
def test_a_run_continues_exactly_when_the_board_is_plugged_in_again(
    board, port, bundle, parameters
):
    script = script_of(parameters, 200, 2)
    with serving(board, port, unplug=700, away=0.05) as server:
        with open_device(uri_of(port, bundle, "&reconnect=30")) as device:
            assert ask(device, script) == expected(parameters, script)
            assert device.link_counters().resumed >= 1
    assert server.unplugged >= 1


def test_without_reconnect_an_unplugged_board_is_an_error_that_says_what_was_answered(
    board, port, bundle, parameters
):
    script = script_of(parameters, 200, 2)
    with serving(board, port, unplug=600):
        with open_device(uri_of(port, bundle)) as device:
            with pytest.raises(DeviceError, match="reconnect=SECONDS") as caught:
                ask(device, script)
    told = re.search(r"Of (\d+) input words, .* acknowledged (\d+);", str(caught.value))
    accepted, delivered = map(int, told.groups())
    assert 0 < delivered <= accepted <= len(script)


def test_a_board_with_another_bitstream_is_refused_by_both_hashes(board, bundle, tmp_path):
    other = write_manifest(PRESETS["tiny"], tmp_path / "other")
    port = TcpPort()
    with serving(board, port), pytest.raises(DeviceError, match="manifest hash") as caught:
        open_device(uri_of(port, other))
    with serving(board, again := TcpPort()), open_device(uri_of(again, bundle)) as device:
        assert f"has the manifest hash {device.manifest.hash}, but" in str(caught.value)


@pytest.mark.few(1)
def test_a_board_passes_the_self_test(board, port, bundle):
    with serving(board, port):
        found = list(self_test(lambda: open_device(uri_of(port, bundle)), tuples=30))
    assert {finding.outcome for finding in found} == {Outcome.PASSED}


def test_hosts_come_one_after_the_other_to_a_fresh_accelerator(board, port, bundle, parameters):
    script = script_of(parameters, 12, 4)
    with serving(board, port):
        for _ in range(2):
            with open_device(uri_of(port, bundle)) as device:
                assert ask(device, script) == expected(parameters, script)
                counters = device.counters()
                assert counters["tuples_r"] + counters["tuples_s"] == 12


def test_a_terminal_leaves_nothing_behind_and_replaces_no_file(tmp_path):
    path = tmp_path / "a" / "tty"
    port = PseudoTerminal(path)
    transport = port.plug(0.0)
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
    assert os.ttyname(descriptor) == str(path.resolve())
    os.close(descriptor)
    transport.close()
    assert list((tmp_path / "a").iterdir()) == []
    path.write_text("a file")
    with pytest.raises(FileExistsError, match="is a file, and would become a link"):
        PseudoTerminal(path)


def test_a_port_without_a_host_waits_no_longer_than_it_is_told():
    port = TcpPort()
    begun = time.monotonic()
    assert port.plug(0.05) is None
    assert time.monotonic() - begun < 5
    with socket.create_connection(("127.0.0.1", port.number)):
        transport = port.plug(5.0)
        assert transport is not None
        transport.close()
    port.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"damage": 1.5}, "damaged bytes must be 0 to 1, not 1.5"),
     ({"unplug": 0}, "Bytes until the board is unplugged must be at least 1, not 0")],
)  # fmt: skip
def test_a_bad_line_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BoardServer(None, None, **options)


@pytest.mark.parametrize(
    ("rate", "baud"), [(5, 1200), (120, 1200), (11_519, 57600), (11_520, 115200), (1e9, 1000000)]
)
def test_the_uri_of_a_board_promises_no_more_than_the_simulation_carries(rate, baud):
    assert simulated_baud(rate) == baud


def test_the_rate_of_a_simulated_line_is_measured(board):
    assert line_rate(board, divisor=25, seconds=0.02) > 10
    assert board.cycle > 0


@pytest.mark.long
def test_the_command_serves_until_it_is_interrupted(tmp_path, parameters, root):
    command = [sys.executable, "-m", "sim", "board", "ULX3S-12F", "--preset", "board-small",
               "--output", str(tmp_path / "served"), "--damage", "0.01"]  # fmt: skip
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            uri = process.stdout.readline().strip()
            assert uri.startswith(f"serial:{tmp_path}")
            script = script_of(parameters, 300, 5)
            with open_device(uri) as device:
                assert ask(device, script) == expected(parameters, script)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            assert "damaged" in process.stderr.read()
        finally:
            process.kill()
    assert not (tmp_path / "served" / "tty").is_symlink()
