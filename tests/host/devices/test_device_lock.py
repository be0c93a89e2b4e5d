# SPDX-License-Identifier: Apache-2.0
"""A device has one holder at a time, among threads and among processes."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from host.devices import locks
from host.devices.locks import LOCK_FOLDER, LockFolder, claim_device, open_in_turn
from host.errors import DeviceError

HOLD = """
import sys, time
from pathlib import Path
from host.devices.locks import claim_device

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
    with pytest.raises(DeviceError):
        claim(tmp_path, "uio:0")
    second.release()
    claim(tmp_path, "uio:0").release()


def test_who_waits_in_vain_is_told_who_holds_the_device_and_what_to_do(tmp_path, other_process):
    with pytest.raises(DeviceError) as caught:
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
    with pytest.raises(DeviceError, match="None of the devices 'uio:0', 'uio:1' became free"):
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


# Who else may write into the folder is not trusted.


def test_the_folder_does_not_depend_on_the_temporary_folder_of_a_process(tmp_path, root):
    """Two processes with different TMPDIR have one device in turns."""
    script = (
        "import sys\n"
        "from host.devices.locks import claim_device\n"
        "from host.errors import DeviceError\n"
        "try:\n"
        "    claim_device([sys.argv[1]], holder='one', seconds=0)\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
        "except DeviceError:\n"
        "    print('busy')\n"
    )
    name = f"tests:{os.getpid()}"
    said, processes = [], []
    for number in range(2):
        temporary = tmp_path / str(number)
        temporary.mkdir()
        settings = {key: value for key, value in os.environ.items() if key != LOCK_FOLDER}
        process = subprocess.Popen(
            [sys.executable, "-c", script, name],
            cwd=root,
            env=settings | {"TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        said.append(process.stdout.readline())
    for process in processes:
        process.communicate(timeout=60)
    (LockFolder().path / name).unlink()
    assert said == ["held\n", "busy\n"]


def test_the_environment_can_name_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCK_FOLDER, str(tmp_path / "locks"))
    claim_device(["a"], holder="a test", seconds=0).release()
    assert (tmp_path / "locks" / "a").is_file()
    assert (tmp_path / "locks").stat().st_mode & 0o7777 == 0o1777


def test_a_planted_link_is_refused_and_its_target_stays_as_it_was(tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "soft").symlink_to(target)
    (tmp_path / "nowhere").symlink_to(tmp_path / "created")
    (tmp_path / "hard").hardlink_to(target)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, reason in [
        ("soft", "is a symbolic link"),
        ("nowhere", "is a symbolic link"),
        ("hard", "has other names too"),
        ("folder", "cannot be used"),
        ("pipe", "is no regular file"),
    ]:
        with pytest.raises(DeviceError, match=f"lock file '.*{name}' of device .* {reason}"):
            claim(tmp_path, name)
    assert target.read_text() == "precious"
    assert not (tmp_path / "created").exists()


def test_a_planted_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_SETTLING_SECONDS", 0.05)
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name, reason in [
        ("link", "is no folder"),
        ("file", "is no folder"),
        ("open", "others may write to and remove all files from, for it is not sticky"),
        ("file/below", "cannot be made"),
    ]:
        with pytest.raises(DeviceError, match=f"{name}', which {reason}.*{LOCK_FOLDER}"):
            claim(tmp_path / name, "a")
    owner = os.getuid() or 12345
    os.chown(tmp_path / "real", owner, -1)
    monkeypatch.setattr(locks.os, "geteuid", lambda: owner + 1)
    with pytest.raises(DeviceError, match=f"belongs to user {owner}, who may remove all files"):
        claim(tmp_path / "real", "a")


def test_who_has_waited_for_a_removed_file_does_not_get_the_device(tmp_path):
    """Two claimants: one has opened the file before it was removed, one after."""
    folder = LockFolder(tmp_path)
    first = claim(tmp_path, "a")
    early = folder.open("a")
    (tmp_path / "a").unlink()
    with pytest.raises(DeviceError, match="was removed while the device was in use"):
        first.release()
    assert not folder.has("a", early)
    os.close(early)
    second = claim(tmp_path, "a")
    with pytest.raises(DeviceError):
        claim(tmp_path, "a")
    second.release()


def test_a_file_that_is_removed_between_opening_and_locking_is_tried_again(tmp_path, monkeypatch):
    flock, removed = locks.fcntl.flock, []

    def removing(descriptor, how):
        if not removed:
            removed.append((tmp_path / "a").unlink())
        flock(descriptor, how)

    monkeypatch.setattr(locks.fcntl, "flock", removing)
    first = claim(tmp_path, "a")
    assert removed
    assert (tmp_path / "a").is_file()
    with pytest.raises(DeviceError):
        claim(tmp_path, "a")
    first.release()


def test_a_replaced_file_is_told_when_the_device_is_released_but_hides_no_error(tmp_path):
    first = claim(tmp_path, "a")
    (tmp_path / "new").write_text("")
    (tmp_path / "new").rename(tmp_path / "a")
    claim(tmp_path, "a").release()
    with pytest.raises(ZeroDivisionError) as caught, first:
        raise ZeroDivisionError
    assert "may have used it too" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "note",
    [
        b'{"failed":"soon"}',
        b'{"failed": NaN}',
        b'{"failed": Infinity}',
        b'{"failed": 1e300}',
        b'{"failed": -1.0}',
        b'{"failed": true}',
        b'{"failed": ' + b"9" * 400 + b"}",
        b'{"process": 1, "holder": "x", "since": "then"}',
        b'{"process": true, "holder": "x", "since": 5.0}',
        b'{"process": ' + b"9" * 3000 + b', "holder": "x", "since": 5.0}',
        b'{"process": 1, "holder": ["x"], "since": 5.0}',
        json.dumps({"process": 1, "holder": "\x1b[2J", "since": 5.0}).encode(),
        b'{"failed": 1.0, "more": 1}',
        b"[" * 4000,
        b'{"failed": 1' + b" " * 5000 + b"}",
        b"\xff\xfe",
        b"[]",
        b"null",
    ],
)
def test_a_damaged_note_is_no_note(tmp_path, note):
    (tmp_path / "a").write_bytes(note)
    first = claim(tmp_path, "a", "b")
    assert first.name == "a"
    (tmp_path / "a").write_bytes(note)
    with pytest.raises(DeviceError, match="no holder is recorded"):
        claim(tmp_path, "a")
    first.release()


def test_a_failure_in_the_future_is_none_and_a_recent_one_counts(tmp_path):
    for later, taken in [(3600, "a"), (-5, "b")]:
        (tmp_path / "a").write_text(json.dumps({"failed": time.time() + later}))
        first = claim(tmp_path, "a", "b")
        assert first.name == taken
        first.release()


def test_a_full_disk_loses_the_note_and_not_the_device(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    first = claim(tmp_path, "a")
    with pytest.raises(DeviceError, match="no holder is recorded"):
        claim(tmp_path, "a")
    first.release()


# Opening a device in turn.


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """The address of a device that all processes share."""
    monkeypatch.setenv(LOCK_FOLDER, str(tmp_path))
    module = tmp_path / "cards_of_a_test"
    module.mkdir()
    (module / "link.py").write_text(
        "from host import open_device as _open\n"
        "def open_device(place):\n    return _open('software:')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "cards_of_a_test.link:0"


def test_a_shared_device_is_opened_in_turn_and_one_of_ones_own_at_once(shared):
    told = []
    with open_in_turn(shared, holder="one", seconds=0):
        with open_in_turn("software:", holder="two", seconds=0) as own:
            assert own.counters()
        with (
            pytest.raises(DeviceError, match=r"within 0\.1 s; .* is held by .*\(one\)"),
            open_in_turn(shared, holder="two", seconds=0.1, report=told.append),
        ):
            pass
    assert len(told) == 1
    assert f"waiting up to 0.1 s for '{shared}'" in told[0]
    assert "(one) since" in told[0]
    with pytest.raises(DeviceError, match="broke"), open_in_turn(shared, holder="a", seconds=0):
        raise DeviceError("It broke.")
    assert claim_device([shared, "other"], holder="b", seconds=0).name == "other"
