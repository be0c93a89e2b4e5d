# SPDX-License-Identifier: Apache-2.0
"""A file is read again if it may have changed, and only then."""

import hashlib
import os
from pathlib import Path

import pytest

from host.files.atomic import file_digest, files_below

LONG_AGO = 1_600_000_000


def test_every_change_is_seen_at_once(tmp_path):
    path = tmp_path / "source.py"
    for text in ("one", "two", "six"):
        path.write_text(text)
        assert file_digest(path) == hashlib.sha256(text.encode()).digest()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        file_digest(path)


def test_a_settled_file_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "source.py"
    path.write_text("one")
    monkeypatch.setattr("time.time_ns", lambda: path.stat().st_ctime_ns + 3_000_000_000)
    first = file_digest(path)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(Path, "read_bytes", lambda _: pytest.fail("read again"))
        assert file_digest(path) == first
    os.utime(path, (LONG_AGO, LONG_AGO))
    path.write_text("two")
    os.utime(path, (LONG_AGO, LONG_AGO))  # restored, as by an archive: its own change tells
    assert file_digest(path) == hashlib.sha256(b"two").digest()


def test_files_below_a_folder_are_found_by_their_suffixes(tmp_path):
    for name in ("b.py", "a/z.py", "a/deep/x.h", "a/notes.txt", "folder.py/c.v", ".py", "a-b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "link.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "broken.py").symlink_to(tmp_path / "gone.py")
    found = files_below(tmp_path, {".py", ".h", ".v"})
    names = [str(Path(entry.path).relative_to(tmp_path)) for entry in found]
    assert names == ["a-b.py", "a/deep/x.h", "a/z.py", "b.py", "folder.py/c.v", "link.py"]
    assert [file_digest(entry) for entry in found] == [
        hashlib.sha256(Path(entry.path).read_bytes()).digest() for entry in found
    ]
