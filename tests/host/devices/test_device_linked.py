# SPDX-License-Identifier: Apache-2.0
from contextlib import ExitStack
import os
import re
import socket
import threading
import time

import numpy as np
import pytest

from hdl.registers.table import COUNTERS_ADDRESS as shell_counters
from hdl.registers.table import MAGIC as shell_magic
from hdl.registers.table import VERSION as shell_version
from hdl.registers.table import shell_table
from host.devices import device_kind, is_shared, open_device
from host.devices.link.transport import DescriptorTransport
from host.devices.linked import (
    CONTROL,
    COUNTERS,
    ENABLE_ERROR,
    ENABLE_MARK,
    ID,
    INTERRUPT_ENABLE,
    MAGIC,
    MAJOR,
    MANIFEST_HASH,
    SNAPSHOT,
    VERSION,
    LinkAddress,
    LinkedDevice,
    words_of_bytes,
    words_to_bytes,
)
from host.errors import DeviceError, UsageError
from host.protocol.manifest import Word
from tests.host.device_contract import DeviceContract, ask, converse, empty
from tests.host.devices.link.bad_socket import BadSocket
from tests.host.devices.link.software_board import TcpDoor, UdpDoor, serve
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
    unpack,
    write_manifest,
)

DOORS = {"tcp": TcpDoor, "udp": UdpDoor}
#: A link carries words whatever they mean, and behind it is a software device, of which all bundles
#: are tried: here, by default, the narrowest words, the widest ones, and some between.
SOME = ("plain", "groups", "wide")


class TestLinkedDevice(DeviceContract):
    @pytest.fixture(
        params=[
            pytest.param(name, marks=() if name in SOME else pytest.mark.long) for name in BUNDLES
        ]
    )
    def parameters(self, request):
        return BUNDLES[request.param]

    @pytest.fixture(params=list(DOORS))
    def open_bundle(self, tmp_path, request):
        with ExitStack() as servers:

            def opened(parameters):
                folder = write_manifest(parameters, tmp_path / "bundle")
                board = servers.enter_context(serve(folder, door=DOORS[request.param]()))
                return open_device(f"{request.param}:127.0.0.1:{board.port}?bundle={folder}")

            yield opened

    def test_stamps_never_decrease(self, timed, monkeypatch):
        monkeypatch.setattr(LinkedDevice, "quiet_seconds", 5.0)  # it returns with the mark
        super().test_stamps_never_decrease(timed)


@pytest.fixture(params=list(DOORS))
def scheme(request):
    return request.param


@pytest.fixture
def bundle(tmp_path):
    return write_manifest(BUNDLES["tiny"], tmp_path / "bundle")


def uri_of(board, bundle, more="", scheme="tcp"):
    return f"{scheme}:127.0.0.1:{board.port}?bundle={bundle}{more}"


def manifest_of(bundle):
    with open_device(f"software:{bundle}") as device:
        return device.manifest


def exchange_until_lost(device, words):
    results = empty(device.manifest.result_word, 500)
    for _ in range(500):
        words = words[device.exchange(words, results, cycles=1).accepted :]


def random_script(count, seed):
    rng = np.random.default_rng(seed)
    tuples = random_tuples(BUNDLES["tiny"], rng, count, pace=0)
    return [*configuration(BUNDLES["tiny"]), *tuples, FLUSH]


def test_damaged_bytes_change_no_answer(bundle):
    script = random_script(300, 1)
    with serve(bundle, rate=0.004) as board, open_device(uri_of(board, bundle)) as device:
        assert ask(device, script) == expected(BUNDLES["tiny"], script)
        assert device.link_counters().garbled > 0
        assert device.counters()["tuples_r"] > 100


def test_lost_doubled_and_overtaken_datagrams_change_no_answer(bundle):
    script = random_script(1500, 6)
    bad = []

    def wrap(link):
        bad.append(BadSocket(link, share=0.3, seed=7))
        return bad[-1]

    with serve(bundle, door=UdpDoor(wrap)) as board:
        with open_device(uri_of(board, bundle, scheme="udp")) as device:
            assert ask(device, script) == expected(BUNDLES["tiny"], script)
            assert device.link_counters().repeated > 0
    assert min(bad[0].happened.values()) > 0


def test_a_join_passes_a_serial_port(bundle):
    script = random_script(40, 5)
    master, slave = os.openpty()
    with serve(bundle) as board:
        transport = DescriptorTransport(master, lambda: os.close(master))
        talk = threading.Thread(target=board.talk, args=[transport])
        talk.start()
        try:
            with open_device(f"serial:{os.ttyname(slave)}?baud=115200&bundle={bundle}") as device:
                assert ask(device, script) == expected(BUNDLES["tiny"], script)
        finally:
            board.cut = True
            talk.join(10)
            transport.close()
            os.close(slave)


def test_a_run_continues_where_it_stood_when_the_link_comes_back(bundle, scheme):
    script = random_script(600, 2)
    words = pack(manifest_of(bundle), script)
    with serve(bundle, door=DOORS[scheme]()) as board:
        with open_device(uri_of(board, bundle, "&reconnect=20", scheme)) as device:
            parts = []
            for at in range(0, len(words), 100):
                some = np.ascontiguousarray(words[at : at + 100])
                while len(some):
                    results = empty(device.manifest.result_word, 64)
                    done = device.exchange(some, results, cycles=1)
                    some = some[done.accepted :]
                    parts.append(results[: done.produced])
                board.cut = True
            found = unpack(device.manifest, np.concatenate(parts))
            missing = 3 - sum(word[0] == "MARK" for word in found)
            rest = converse(device, words[:0], missing) if missing else words[:0]
            found += unpack(device.manifest, rest) if missing else []
            assert found == expected(BUNDLES["tiny"], script)
            assert device.link_counters().resumed >= 1
        assert board.sessions == 1


def told_numbers(error):
    """Return the numbers of accepted, acknowledged and result words in a message."""
    numbers = r"Of (\d+) input words, the board has acknowledged (\d+); (\d+) result words"
    return map(int, re.search(numbers, str(error)).groups())


def test_a_lost_link_says_what_was_answered_and_what_not(bundle, scheme):
    script = random_script(5, 3)
    with (
        serve(bundle, door=DOORS[scheme]()) as board,
        open_device(uri_of(board, bundle, scheme=scheme)) as device,
    ):
        ask(device, script)
        words = pack(device.manifest, script)
        board.stop()
        with pytest.raises(DeviceError, match="closed it|reset|pipe|refused") as caught:
            exchange_until_lost(device, words)
        assert caught.value.fault == "lost"
        accepted, delivered, results = told_numbers(caught.value)
        assert delivered <= accepted <= 2 * len(script)
        assert accepted >= len(script)
        assert results > 0
        for part in (repr(device.uri), "reconnect=SECONDS"):
            assert part in str(caught.value)


def test_a_board_that_was_reset_meanwhile_cannot_go_on(bundle):
    with serve(bundle) as board:
        with open_device(uri_of(board, bundle, "&reconnect=20")) as device:
            ask(device, random_script(5, 4))
            board.cut = True
            board.reset()
            with pytest.raises(DeviceError, match="the board was reset meanwhile") as caught:
                exchange_until_lost(device, empty(device.manifest.input_word))
            assert "open the device again and run the join again" in str(caught.value)


def test_a_silent_board_is_an_error_in_time(bundle, monkeypatch, scheme):
    patience(monkeypatch, seconds=0.3)
    with (
        serve(bundle, door=DOORS[scheme]()) as board,
        open_device(uri_of(board, bundle, scheme=scheme)) as device,
    ):
        board.mute = True
        with pytest.raises(DeviceError, match="was silent for 0.3 s|did not come within 0.3 s"):
            device.counters()


def test_on_a_slow_line_a_board_has_time_for_several_attempts(bundle, monkeypatch):
    patience(monkeypatch, seconds=0.1, tries=2)
    timeout = 0.05 + 2 * 16 * 256 / 23_040
    with (
        serve(bundle) as board,
        open_device(uri_of(board, bundle, "&baud=230400")) as device,
    ):
        board.mute = True
        with pytest.raises(DeviceError, match=f"(silent for|within) {2 * timeout:g} s"):
            device.counters()


def patience(monkeypatch, *, seconds, tries=1):
    monkeypatch.setattr("host.devices.linked.SECONDS", seconds)
    monkeypatch.setattr("host.devices.linked.TRIES", tries)


def test_a_board_with_another_bitstream_is_refused_by_both_hashes(bundle, tmp_path):
    other = write_manifest(BUNDLES["plain"], tmp_path / "other")
    manifests = [manifest_of(folder) for folder in (bundle, other)]
    with serve(other) as board, pytest.raises(DeviceError) as caught:
        open_device(uri_of(board, bundle))
    for part in (manifests[0].hash, manifests[1].hash, "manifest hash", "load the bundle's"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"version": 9}, "link version 9, but this kit has 2: another version of the kit"),
     ({"input_bytes": 17}, "input word bytes 17"),
     ({"result_bytes": 18}, "result word bytes 18")],
)  # fmt: skip
def test_a_board_of_another_kind_is_refused(bundle, changes, what):
    with serve(bundle, **changes) as board, pytest.raises(DeviceError, match=what):
        open_device(uri_of(board, bundle))


@pytest.mark.parametrize(
    ("changes", "what"),
    [({ID: 7}, "register map 0x00000007, but this kit has 0x544b4a53: another version of the kit"),
     ({ID: None}, "register map none"),
     ({VERSION: 2 << 16 | 3}, "register map version 2.3, but this kit has 1.x")],
)  # fmt: skip
def test_a_board_of_another_kit_is_refused_by_its_registers(bundle, changes, what):
    with serve(bundle) as board:
        board.constants |= changes
        with pytest.raises(DeviceError, match=what) as caught:
            open_device(uri_of(board, bundle))
        assert "make bitstream BOARD=..." in str(caught.value)


def test_a_board_with_more_registers_is_accepted(bundle):
    with serve(bundle) as board:
        board.constants[VERSION] = 1 << 16 | 7
        with open_device(uri_of(board, bundle)) as device:
            assert device.request(VERSION).data == 1 << 16 | 7
            assert device.greeting.hash.hex() == device.manifest.hash


def test_the_host_knows_the_registers_of_the_shells():
    table = shell_table(BUNDLES["tiny"])
    names = ("ID", "VERSION", "CONTROL", "INTERRUPT_ENABLE")
    assert [table[name].address for name in names] == [ID, VERSION, CONTROL, INTERRUPT_ENABLE]
    assert table["MANIFEST_HASH_0"].address == MANIFEST_HASH
    assert (shell_magic, shell_version[0], shell_counters) == (MAGIC, MAJOR, COUNTERS)
    for name, field, bit in [("CONTROL", "SNAPSHOT", SNAPSHOT),
                             ("INTERRUPT_ENABLE", "MARK", ENABLE_MARK),
                             ("INTERRUPT_ENABLE", "ERROR", ENABLE_ERROR)]:  # fmt: skip
        (found,) = (f for f in table[name].fields if f.name == field)
        assert 1 << found.offset == bit


def test_nobody_at_the_port_is_a_clear_error(bundle, scheme):
    door = DOORS[scheme]()
    door.close()
    checks = {
        "tcp": r"that the server .* the baud rate of the line behind the server \(baud=N\)",
        "udp": "that the board has this address, that a network card",
    }
    with pytest.raises(DeviceError, match=f"could not be opened .*; check {checks[scheme]}"):
        open_device(f"{scheme}:127.0.0.1:{door.port}?bundle={bundle}")


@pytest.mark.parametrize(("noise", "heard"), [(b"", "no byte came"), (b"x\0y\0", "2 pieces")])
def test_a_server_that_is_no_board_is_a_clear_error(bundle, monkeypatch, noise, heard):
    monkeypatch.setattr("host.devices.linked.SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk():
            connected, _ = server.accept()
            with connected:
                connected.sendall(noise)
                time.sleep(1.0)

        thread = threading.Thread(target=talk)
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(DeviceError, match=f"did not answer the greeting.*{heard}"):
            open_device(f"tcp:127.0.0.1:{port}?bundle={bundle}")
        thread.join()


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("tcp:localhost:1", "lacks its bundle"),
        ("tcp:1?bundle=b", "lacks its host and port"),
        ("udp:1?bundle=b", "lacks its host and port, 'udp:HOST:PORT'"),
        ("tcp:h:99999?bundle=b", "lacks its host and port"),
        ("serial:?bundle=b", "lacks the path"),
        ("serial:/dev/x?bundle=b&baud=fast", "has the option baud='fast', which is no number"),
        ("serial:/dev/x?bundle=b&baud=0.5", "has the baud rate '0.5'"),
        ("tcp:h:1?bundle=b&baud=0", "has the baud rate '0'"),
        ("tcp:h:1?bundle=b&speed=9600", "unknown option 'speed'"),
        ("tcp:h:1?bundle=b&reconnect=-1", "has the option reconnect='-1'"),
    ],
)
def test_a_uri_that_lacks_something_says_what(uri, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        open_device(uri)
    assert "'serial:PATH?baud=N&bundle=BUNDLE'" in str(caught.value)


def test_the_times_of_a_link_follow_from_the_line_behind_a_tcp_server():
    rates = [
        LinkAddress.parse(f"tcp:h:1?bundle=b{more}").bytes_per_second for more in ("", "&baud=9600")
    ]
    assert rates == [1e6, 960.0]


def test_two_result_ports_are_refused(tmp_path):
    folder = write_manifest(BUNDLES["plain"].with_(result_streams=2), tmp_path / "bundle")
    with pytest.raises(DeviceError, match="2 result ports, but a link carries one"):
        open_device(f"tcp:127.0.0.1:1?bundle={folder}")


def test_a_board_lacks_counters_of_another_map(bundle):
    with serve(bundle) as board, open_device(uri_of(board, bundle)) as device:
        board.device.counters = dict
        with pytest.raises(DeviceError, match="has no counter 'cycles' at register 0x100"):
            device.counters()


@pytest.mark.parametrize("scheme", ["tcp", "udp", "serial"])
def test_boards_are_shared_by_processes(scheme):
    assert device_kind(f"{scheme}:x") == scheme
    assert is_shared(f"{scheme}:x")


@pytest.mark.parametrize("bits", [1, 8, 9, 64, 65, 130])
def test_words_pass_as_whole_bytes_the_lowest_first(bits):
    word = Word(bits, {})
    rng = np.random.default_rng(bits)
    values = [int.from_bytes(rng.bytes(17), "little") % (1 << bits) for _ in range(5)]
    rows = [[value >> 64 * n & (1 << 64) - 1 for n in range(word.columns)] for value in values]
    words = np.array(rows, np.uint64)
    data = words_to_bytes(words, word)
    size = -(-bits // 8)
    assert data == b"".join(value.to_bytes(size, "little") for value in values)
    assert np.array_equal(words_of_bytes(data, word), words)
