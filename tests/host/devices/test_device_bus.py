# SPDX-License-Identifier: Apache-2.0
from contextlib import ExitStack, contextmanager
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import threading
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from hdl.bundle import write_bundle
from hdl.shells.axi import AxiOptions
from host import CountWindow, Ordering, open_device
from host.__main__ import main
from host.devices import device_kind, is_shared
from host.devices.bus import BusDevice, Copies
from host.errors import DeviceError, UsageError
from host.query.queries import Query, Term
from host.session.join import join_tables
from sim.board.card import CardServer, SimulatedCard
from splitjoin.pynq import open_overlay
from tests.conftest import ROOT
from tests.host.device_contract import DeviceContract, ask, empty
from tests.host.devices import pynq_stand_in
from tests.host.session.test_driver import random_table
from tests.host.session.test_driver_simulated import PARAMETERS as SIMULATED
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    configuration,
    expected,
    pack,
    random_tuples,
    write_manifest,
)
from tests.host.tables import naive_join
from tests.windows import over

#: An accelerator that other tests simulate, too.
SCAN = SIMULATED["scan"]
#: Results of a packet: fewer than most tests have.
PACKET = 16
PACKETS = AxiOptions(packet=PACKET)
KINDS = ("axi", "pynq")
#: The card pauses at random, in a third of the cycles each way.
STALLS = {"seed": 5, "stall_in": 85, "stall_out": 85}
#: Words of three numbers in memory are four at the pins, and are copied.
PARAMETERS = ["scan", *(pytest.param(name, marks=pytest.mark.long) for name in BUNDLES)]


def shelled(parameters, folder):
    """Write the bundle of an accelerator in a shell for a DMA."""
    write_bundle(parameters, folder, shells=["axi"], axi=PACKETS)
    return folder


def describe(folder, options, streams):
    """Add what a manifest says of a shell; its hash does not cover that."""
    path = folder / "manifest.json"
    words = {"s": "input_word", "m": "result_word"}
    described = {name: {"word": words[name[0]], "bytes": 8} for name in streams}
    shells = {"axi": {"options": options, "streams": described}}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"shells": shells}))


@contextmanager
def served(folder, place, **options):
    """Serve a card of a bundle in a thread; give the server."""
    card = SimulatedCard(folder, **options)
    server = CardServer(card, place)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join()
        card.close()


@pytest.fixture
def overlay(monkeypatch):
    """Let ``import pynq`` find the stand-in, whose overlay is the card that is appended."""
    cards, module = [], ModuleType("pynq")
    module.Overlay = lambda file: pynq_stand_in.Overlay(cards[-1], module.most)
    module.allocate, module.most = pynq_stand_in.allocate, 1 << 14
    module.cards = cards
    monkeypatch.setitem(sys.modules, "pynq", module)
    yield module
    for card in cards:
        card.close()


@pytest.fixture
def opening(tmp_path, overlay):
    """Return a function that opens a bundle as ``axi:`` or ``pynq:``, always the same card."""
    with ExitStack() as servers:
        started = {}

        def opened(kind, folder, **options):
            options = {**STALLS, **options}
            if kind == "pynq":
                if kind not in started:
                    overlay.cards.append(SimulatedCard(folder, **options))
                started[kind] = "pynq:splitjoin.bit"
            elif kind not in started:
                server = servers.enter_context(served(folder, tmp_path / "card", **options))
                started[kind] = server.uri
            return open_device(f"{started[kind]}?bundle={folder}")

        yield opened


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return shelled(SCAN, tmp_path_factory.mktemp("bus") / "bundle")


class TestBusDevice(DeviceContract):
    timed_parameters = SCAN

    @pytest.fixture(params=PARAMETERS)
    def parameters(self, request):
        return {"scan": SCAN, **BUNDLES}[request.param]

    @pytest.fixture(params=["axi", pytest.param("pynq", marks=pytest.mark.long)])
    def kind(self, request):
        return request.param

    @pytest.fixture
    def open_bundle(self, opening, kind, tmp_path):
        return lambda parameters: opening(kind, shelled(parameters, tmp_path / "bundle"))

    def test_stamps_never_decrease(self, timed, monkeypatch):
        monkeypatch.setattr(BusDevice, "quiet_seconds", 5.0)  # it returns with the mark
        super().test_stamps_never_decrease(timed)


def random_script(count, seed):
    tuples = random_tuples(SCAN, np.random.default_rng(seed), count, pace=1)
    return [*configuration(SCAN), *tuples, FLUSH]


def test_a_join_passes_without_a_copy_of_an_input_word(kind, bundle, opening):
    """Words are made where the DMA reads them; a result is copied once, from a DMA's buffer."""
    rng = np.random.default_rng(7)
    left, right = (random_table(rng, rows, 700) for rows in (300, 400))
    query = Query(
        band=[Term("x", "x", -1, 2), Term("name", "name")],
        time="t", ordering=Ordering.outer(), **over(CountWindow(57)),
    )  # fmt: skip
    with opening(kind, bundle) as device:
        before = device.counters()
        result = join_tables(left, right, query, device)
        pairs = list(zip(*(rows.tolist() for rows in result.pairs), strict=True))
        assert pairs == naive_join(left, right, query)
        after = device.counters()
        words = sum(after[name] - before[name] for name in ("results", "stars", "marks"))
        assert device.copies == Copies(words=0, results=words)
        assert after["tuples_r"] + after["tuples_s"] == 700


def test_words_in_memory_that_the_dma_does_not_reach_are_copied_and_counted(bundle, opening):
    script = random_script(60, 1)
    with opening("pynq", bundle) as device:
        assert ask(device, script) == expected(SCAN, script)
        assert device.copies.words == len(pack(device.manifest, script))


@pytest.mark.parametrize("stalls", [0, 230])
def test_what_an_earlier_session_has_left_is_dropped(kind, bundle, opening, stalls, monkeypatch):
    monkeypatch.setattr(BusDevice, "drain_seconds", 0.5)  # a simulation on a busy machine is slow
    script = random_script(400, 2)
    with opening(kind, bundle, stall_in=stalls, stall_out=stalls) as device:
        words = pack(device.manifest, script)
        device.exchange(words, empty(device.manifest.result_word, 3), cycles=1)
    script = random_script(80, 3)
    with opening(kind, bundle) as device:
        assert ask(device, script) == expected(SCAN, script)


def test_another_bundle_than_the_cards_is_refused(kind, bundle, opening, tmp_path):
    opening(kind, bundle).close()
    other = write_manifest(SCAN.with_(sub_window=21), tmp_path / "other")
    describe(other, {"packet": PACKET}, ["s_axis", "m_axis"])
    with pytest.raises(
        DeviceError, match=r"has the manifest hash \w+, but the bundle has \w+; load"
    ):
        opening(kind, other)


@pytest.mark.parametrize(
    ("shell", "reason"),
    [
        (None, "a bundle with no AXI shell"),
        (({}, ["s_axis", "m_axis"]), "a shell without packets"),
        (({"packet": 8}, ["s_axis_r", "s_axis_s", "m_axis"]), "a shell with 3 streams"),
    ],
)
def test_a_shell_that_no_dma_serves_is_refused(shell, reason, tmp_path):
    write_manifest(BUNDLES["tiny"], tmp_path / "bundle")
    if shell is not None:
        describe(tmp_path / "bundle", *shell)
    with pytest.raises(DeviceError, match=f"{reason}.*`--shell axi --axi-packet 256"):
        open_device(f"axi:{tmp_path}/card?bundle={tmp_path / 'bundle'}")


def test_files_that_are_no_card_are_refused_and_left_alone(bundle, tmp_path):
    with pytest.raises(DeviceError, match=r"No such file.*check that the driver is loaded"):
        open_device(f"axi:{tmp_path}/card?bundle={bundle}")
    for end in ("user", "h2c_0", "c2h_0"):
        (tmp_path / f"card_{end}").write_bytes(bytes(4096))
    with pytest.raises(DeviceError, match="neither a character device nor a pipe"):
        open_device(f"axi:{tmp_path}/card?bundle={bundle}")
    assert (tmp_path / "card_c2h_0").stat().st_size == 4096


def test_registers_that_are_no_shells_are_refused(bundle, tmp_path):
    with ExitStack() as files:
        for end in ("h2c_0", "c2h_0"):
            os.mkfifo(tmp_path / f"card_{end}")
            held = os.open(tmp_path / f"card_{end}", os.O_RDWR)
            files.callback(os.close, held)
        (tmp_path / "card_user").write_bytes(bytes(8192))
        with pytest.raises(DeviceError, match="shows 0x00000000 and version 0 where"):
            open_device(f"axi:{tmp_path}/card?bundle={bundle}&offset=0x1000")


def test_a_card_that_goes_away_is_an_error(bundle, tmp_path):
    with ExitStack() as stack:
        with served(bundle, tmp_path / "card") as server:
            device = stack.enter_context(open_device(f"{server.uri}?bundle={bundle}"))
            ask(device, random_script(5, 4))
        words = pack(device.manifest, random_script(5, 4))
        results = empty(device.manifest.result_word, 9)

        def exchange_on():
            for _ in range(50):
                device.exchange(words, results, cycles=1)

        with pytest.raises(DeviceError, match=r"card_.2._0' has failed.*open the device again"):
            exchange_on()


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("axi:/dev/xdma0", "lacks its bundle"),
        ("axi:?bundle=b", "lacks its card"),
        ("pynq:?bundle=b", "lacks its bitstream"),
        ("axi:/dev/xdma0?bundle=b&dma=x", "unknown option 'dma'"),
        ("axi:/dev/xdma0?bundle={bundle}&offset=far", "has an option that is no number"),
        ("pynq:x.bit?bundle={bundle}", "needs the package pynq"),
    ],
)
def test_a_uri_that_lacks_something_says_what(uri, reason, bundle, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynq", None)
    with pytest.raises(UsageError, match=reason):
        open_device(uri.format(bundle=bundle))


def test_a_part_that_the_overlay_lacks_is_named(bundle, overlay):
    overlay.cards.append(SimulatedCard(bundle))
    with pytest.raises(DeviceError, match="no part 'dma', only axi_dma_0, processing.*&dma=NAME"):
        open_device(f"pynq:x.bit?bundle={bundle}&dma=dma")


def test_packets_that_the_dma_cannot_move_at_once_are_refused(bundle, overlay):
    overlay.cards.append(SimulatedCard(bundle))
    overlay.most = 8 * PACKET
    with pytest.raises(DeviceError, match=f"{8 * PACKET} bytes, .* {8 * PACKET - 1} .*packet 15 "):
        open_device(f"pynq:x.bit?bundle={bundle}")


def test_an_overlay_that_is_open_is_taken_as_it_is(bundle):
    script, card = random_script(20, 6), SimulatedCard(bundle)
    opened = pynq_stand_in.Overlay(card, 1 << 14)
    with open_overlay(opened, bundle, allocate=pynq_stand_in.allocate) as device:
        assert ask(device, script) == expected(SCAN, script)
    card.close()


@pytest.mark.parametrize("kind", KINDS)
def test_cards_are_shared_by_processes(kind):
    assert device_kind(f"{kind}:x") == kind
    assert is_shared(f"{kind}:x")


@pytest.mark.long
def test_a_card_is_served_by_a_process_and_joined_by_a_command(bundle, tmp_path):
    rng = np.random.default_rng(8)
    tables = [random_table(rng, rows, 900) for rows in (300, 400)]
    for name, table in zip(("left", "right"), tables, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    command = ["-m", "sim", "card", str(bundle), "--stalls", "60", "--output"]
    process = subprocess.Popen(
        [sys.executable, *command, str(tmp_path / "card")],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        uri = process.stdout.readline().strip()
        assert uri == f"axi:{tmp_path / 'card'}?bundle={bundle}"
        assert main(["selftest", uri]) == 0
        join = ["join"]
        for side in ("left", "right"):
            join += [f"--{side}", str(tmp_path / f"{side}.parquet")]
        join += ["--output", str(tmp_path / "pairs.csv"), "--time", "t", "--rows", "57"]
        assert main([*join, "--band", "x:x:-1:2", "--device", uri]) == 0
        query = Query(band=[Term("x", "x", -1, 2)], time="t", **over(CountWindow(57)))
        lines = Path(tmp_path / "pairs.csv").read_text().splitlines()
        assert len(lines) - 1 == len(naive_join(*tables, query))
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        process.stdout.close()
    assert not list(tmp_path.glob("card_*"))
