# SPDX-License-Identifier: Apache-2.0
import os
import socket

import pytest

from host.devices import open_device
from host.devices.link.transport import DescriptorTransport, open_serial
from host.errors import DeviceError, UsageError
from tests.host.small_bundles import BUNDLES, write_manifest


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    with near, far:
        yield DescriptorTransport(near.fileno(), near.close), far


def test_bytes_pass_as_they_are(pair):
    near, far = pair
    assert near.exchange(b"abc", 1.0) == (3, b"")
    assert far.recv(10) == b"abc"
    far.sendall(bytes(range(256)))
    assert near.exchange(b"", 1.0) == (0, bytes(range(256)))
    assert near.exchange(b"", 0.01) == (0, b"")


def test_a_full_buffer_takes_what_it_can_and_does_not_wait(pair):
    near, _ = pair
    total = 0
    while sent := near.exchange(bytes(1 << 20), 0.0)[0]:
        total += sent
    assert total > 0


def test_the_end_of_the_other_side_is_an_error(pair):
    near, far = pair
    far.close()
    with pytest.raises(OSError, match="other side closed it"):
        near.exchange(b"", 1.0)


def test_a_closed_transport_refuses(pair):
    near, _ = pair
    near.close()
    near.close()
    with pytest.raises(OSError, match="closed on this side"):
        near.exchange(b"", 1.0)


def test_a_serial_port_is_opened_raw():
    master, slave = os.openpty()
    try:
        near = open_serial(os.ttyname(slave), 115200)
        text = bytes(range(256))
        assert near.exchange(text, 1.0)[0] == 256
        assert os.read(master, 300) == text
        os.write(master, text)
        assert near.exchange(b"", 1.0)[1] == text
        with pytest.raises(BlockingIOError):
            open_serial(os.ttyname(slave), 115200)
        near.close()
        open_serial(os.ttyname(slave), 115200).close()
    finally:
        os.close(master)
        os.close(slave)


def test_a_baud_rate_that_the_system_lacks_is_a_clear_error(tmp_path):
    folder = write_manifest(BUNDLES["plain"], tmp_path / "bundle")
    with pytest.raises(UsageError, match="must be one of .*115200.*, not 12345"):
        open_device(f"serial:/dev/null?baud=12345&bundle={folder}")


def test_what_is_no_serial_port_is_a_clear_error(tmp_path):
    folder = write_manifest(BUNDLES["plain"], tmp_path / "bundle")
    for path in ("/dev/null", tmp_path / "none"):
        with pytest.raises(
            DeviceError, match="could not be opened.*that the baud rate is the bitstream.s"
        ):
            open_device(f"serial:{path}?baud=115200&bundle={folder}")
