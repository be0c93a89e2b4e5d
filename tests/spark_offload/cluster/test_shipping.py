# SPDX-License-Identifier: Apache-2.0
"""Content is sent to a session once: after an error again, from two threads not twice."""

import gc
import shutil
from threading import Event, Thread

import pytest

from host.devices.software import SOFTWARE_MANIFEST
from spark_offload.cluster.machines import Shipments, ship_bundle, ship_packages, shipments_of


class Network:
    """A cluster that fails as often as told, and takes its time if told."""

    def __init__(self, failures=0, gate=None):
        self.shipments = Shipments()
        self.failures = failures
        self.gate = gate
        self.began = Event()
        self.packages, self.folders = [], []

    def _send(self, sent, item):
        self.began.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        assert item[0].is_file()
        if self.failures:
            self.failures -= 1
            raise ConnectionError("on purpose")
        sent.append(item)

    def send_package(self, path):
        self._send(self.packages, (path,))

    def send_folder(self, path, name):
        self._send(self.folders, (path, name))


def test_content_is_sent_again_after_an_error_and_then_no_more(tmp_path):
    network = Network(failures=1)
    with pytest.raises(ConnectionError):
        ship_packages(network)
    assert ship_packages(network) == ship_packages(network)
    assert len(network.packages) == 1

    bundle = f"software:{tmp_path}"
    shutil.copyfile(SOFTWARE_MANIFEST, tmp_path / "manifest.json")
    network.failures = 1
    with pytest.raises(ConnectionError):
        ship_bundle(network, bundle)
    address = ship_bundle(network, bundle)
    assert ship_bundle(network, bundle) == address
    ((_, name),) = network.folders
    assert address == f"software:spark-files:{name}"


def test_a_device_without_a_bundle_needs_nothing_but_the_packages():
    """Not that ``software:``, the engine, becomes ``software:BUNDLE``, a model of a device."""
    network = Network()
    assert ship_bundle(network, "software:") == "software:"
    assert network.folders == []


def test_a_second_thread_waits_until_the_first_has_sent():
    network = Network(gate=Event())
    returned = []
    threads = [Thread(target=lambda: returned.append(ship_packages(network))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert network.began.wait(10)
    threads[1].join(0.2)
    assert not returned, "neither may go on before the content is there"
    network.gate.set()
    for thread in threads:
        thread.join(10)
    assert len(returned) == 2
    assert len(network.packages) == 1


def test_what_was_sent_is_forgotten_with_the_session():
    class Session:
        pass

    first = Session()
    sent = []
    shipments_of(first).send_once("a", sent.append)
    shipments_of(first).send_once("a", sent.append)
    (folder,) = sent
    assert folder.is_dir()
    del first
    gc.collect()
    assert not folder.exists()
    second = Session()  # it may have the address of the first one
    shipments_of(second).send_once("a", sent.append)
    assert len(sent) == 2
