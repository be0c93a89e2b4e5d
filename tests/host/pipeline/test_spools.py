# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
import tempfile
import threading

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.errors import FailureError
from host.pipeline import sorting
from host.pipeline.parallel import Spools, Stack

PARTS = st.lists(st.lists(st.integers(0, 40), max_size=5), max_size=6)


def batch(rows, start=0):
    text = pa.array([f"t{value % 3}" for value in range(rows)]).dictionary_encode()
    return pa.record_batch({"n": np.arange(start, start + rows), "text": text})


@given(PARTS, st.integers(0, 2000))
def test_parts_come_back_as_they_were_kept(parts, most):
    given = [[batch(rows, start) for start, rows in enumerate(part)] for part in parts]
    spools = Spools(most)
    try:
        kept = [spools.keep(part) for part in given]
        total = sum(each.nbytes for part in given for each in part)
        assert bool(spools.spilled) == (total > most)
        for part, read in zip(given, kept, strict=True):
            assert [each.to_pydict() for each in read()] == [each.to_pydict() for each in part]
            assert list(read()) == []
    finally:
        spools.close()


def test_memory_that_is_read_is_free_again():
    rows = batch(100)
    spools = Spools(rows.nbytes)
    for _ in range(3):
        [again] = spools.keep([rows])()
        assert again is rows
    assert spools.spilled == 0


def test_threads_keep_parts_at_the_same_time_and_files_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spools, kept = Spools(4000), {}

    def keep(number):
        kept[number] = spools.keep(batch(50, 1000 * number + 50 * each) for each in range(20))

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert spools.spilled > 4000
    for number, read in kept.items():
        numbers = [n for each in read() for n in each["n"].to_pylist()]
        assert numbers == list(range(1000 * number, 1000 * number + 1000))
    assert list(tmp_path.iterdir())
    spools.close()
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_told_with_its_place(monkeypatch):
    def full(path, mode):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sorting.pa, "OSFile", full)
    spools = Spools(0)
    with pytest.raises(FailureError, match=f"bytes in {Path(tempfile.gettempdir())}.*TMPDIR"):
        spools.keep([batch(1)])
    spools.close()


def test_a_stack_is_read_backwards_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Stack(1000) as stack:
        for number in range(9):
            stack.push(batch(number % 4 * 20, 100 * number))
        assert list(tmp_path.iterdir())
        read = list(stack.popped())
        assert [each.num_rows for each in read] == [number % 4 * 20 for number in range(9)][::-1]
        firsts = [each["n"][0].as_py() for each in read if each.num_rows]
        assert firsts == [700, 600, 500, 300, 200, 100]
        assert not list(stack.popped())
    assert not list(tmp_path.iterdir())
