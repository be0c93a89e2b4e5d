# SPDX-License-Identifier: Apache-2.0
"""A device has one holder at a time, among threads and among processes."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from host.device.lock import claim_device
from host.errors import DeviceBusyError

HOLD = """
import sys, time
from pathlib import Path
from host.device.lock import claim_device

claim = claim_device([sys.argv[2]], holder="the other one", seconds=9, folder=Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def claim(folder, *names, seconds=0.0):
    return claim_device(names, holder="a test", seconds=seconds, folder=folder)


@pytest.fixture
def other_process(tmp_path, root):
    """A process that holds ``uio:0``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), "uio:0"],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_next_one_waits_until_the_device_is_released(tmp_path):
    first = claim(tmp_path, "uio:0")
    threading.Timer(0.3, first.release).start()
    began = time.monotonic()
    second = claim(tmp_path, "uio:0", seconds=30)
    assert 0.2 < time.monotonic() - began < 10
    first.release()  # again: nothing to do, and the second one still holds it
    with pytest.raises(DeviceBusyError):
        claim(tmp_path, "uio:0")
    second.release()
    claim(tmp_path, "uio:0").release()


def test_who_waits_in_vain_is_told_who_holds_the_device_and_what_to_do(tmp_path, other_process):
    with pytest.raises(DeviceBusyError) as caught:
        claim(tmp_path, "uio:0", seconds=0.1)
    message = str(caught.value)
    assert "Device 'uio:0' did not become free within 0.1 s" in message
    assert f"process {other_process.pid} (the other one) since " in message
    assert message.endswith("wait longer, or end that process.")


def test_the_device_of_a_killed_process_is_free(tmp_path, other_process):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    taken = claim(tmp_path, "uio:0", "uio:1")
    assert taken.name == "uio:0"
    taken.release()


def test_the_first_free_device_is_taken(tmp_path, other_process):
    taken = claim(tmp_path, "uio:0", "uio:1")
    assert taken.name == "uio:1"
    with pytest.raises(DeviceBusyError, match="None of the devices 'uio:0', 'uio:1' became free"):
        claim(tmp_path, "uio:0", "uio:1")
    taken.release()


def test_a_device_that_failed_is_taken_only_if_there_is_no_other(tmp_path):
    claim(tmp_path, "a").release(failed=True)
    sound = claim(tmp_path, "a", "b")
    assert sound.name == "b"
    # b is in use and sound, so it is waited for, up to the deadline.
    began = time.monotonic()
    last_resort = claim(tmp_path, "a", "b", seconds=0.4)
    assert last_resort.name == "a"
    assert time.monotonic() - began >= 0.4
    last_resort.release()  # it served, so it is as good as any other again
    again = claim(tmp_path, "a", "b")
    assert again.name == "a"
    again.release()
    sound.release()


def test_if_all_have_failed_the_one_that_failed_first_is_taken(tmp_path):
    for name in ("a", "b"):
        claim(tmp_path, name).release(failed=True)
    first = claim(tmp_path, "b", "a")
    second = claim(tmp_path, "b", "a")  # at once: what is held has failed too
    assert (first.name, second.name) == ("a", "b")
    first.release()
    second.release()


def test_addresses_of_any_length_and_kind_have_a_file(tmp_path):
    for name in ("my.module:/dev/a b", "sim:" + "x" * 5000, "uio:0", "../up"):
        claim(tmp_path, name).release()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == 4
    assert "uio:0" in files
