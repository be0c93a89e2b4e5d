# SPDX-License-Identifier: Apache-2.0
"""Inputs that are folders of files, on the command line and below it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.errors import OrderError, UsageError
from host.files.reading import Dataset, files_of, read_table
from host.files.writing import write_table
from host.pipeline.inputs import OrderedInput


def table(times, source=0):
    times = np.array(times, np.int64)
    return pa.table({"t": times, "k": times % 5, "source": np.full(len(times), source)})


def folder(place, parts, ending="parquet"):
    """Write parts of a table into a folder, one per file."""
    place.mkdir(parents=True)
    for number, part in enumerate(parts):
        write_table(part.to_batches(), part.schema, place / f"part-{number}.{ending}")
    return place


def rows_of(place, *, is_sorted):
    """Return the rows of an input in the order of time."""
    return (
        OrderedInput(Dataset(place), "t", "left", is_sorted=is_sorted)
        .reader()
        .read_all()
        .to_pydict()
    )


def random_parts(seed, count, rows):
    generator = np.random.default_rng(seed)
    return [table(np.sort(generator.integers(0, 60, rows)), n) for n in range(count)]


def in_order(parts):
    whole = pa.concat_tables(parts)
    return whole.take(np.argsort(whole["t"].to_numpy(), kind="stable"))


def test_a_folder_is_its_files_by_name(tmp_path):
    place = folder(tmp_path / "in", [table([1]), table([2])])
    (place / "_SUCCESS").touch()
    (place / ".part-0.parquet.crc").touch()
    assert [file.name for file in files_of(place)] == ["part-0.parquet", "part-1.parquet"]
    assert files_of(place / "part-1.parquet") == [place / "part-1.parquet"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_sorted_files_are_merged_and_others_follow_each_other(tmp_path, ending):
    parts = random_parts(1, 3, 40)
    place = folder(tmp_path / "in", parts, ending)
    for is_sorted in (True, False):  # which is found out where it is not declared
        assert rows_of(place, is_sorted=is_sorted) == in_order(parts).to_pydict()
    assert read_table(place).to_pydict() == pa.concat_tables(parts).to_pydict()


def test_a_file_that_is_not_sorted_is_named(tmp_path):
    place = folder(tmp_path / "in", [table([1, 2]), table([3, 1])])
    with pytest.raises(OrderError, match=r"row 1 of file '.*part-1.parquet' .* has 1 after 3"):
        rows_of(place, is_sorted=True)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    place = folder(tmp_path / "in", [table([1]), table([2]).drop_columns("k")])
    with pytest.raises(UsageError, match=r"part-1.parquet' has the columns .*, but .*part-0"):
        read_table(place)
    (place / "part-2.csv").touch()
    with pytest.raises(UsageError, match=r"has files of .csv and .parquet; an input is"):
        files_of(place)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no files"):
        files_of(tmp_path / "empty")


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_join_of_folders_is_the_join_of_their_rows(tmp_path, is_sorted, ending):
    left, right = random_parts(2, 3, 30), random_parts(3, 2, 30)
    base = [
        "join", "--time", "t", "--on", "k", "--within", "4", "--device", "software:",
        *(["--sorted"] if is_sorted else []),
    ]  # fmt: skip
    places = [folder(tmp_path / "l", left, ending), folder(tmp_path / "r", right, ending)]
    wholes = []
    for side, parts in (("lw", left), ("rw", right)):
        whole = tmp_path / f"{side}.{ending}"
        rows = in_order(parts)
        write_table(rows.to_batches(), rows.schema, whole)
        wholes.append(whole)
    answers = []
    for name, (one, other) in (("folders", places), ("files", wholes)):
        output = tmp_path / f"{name}.{ending}"
        inputs = ["--left", str(one), "--right", str(other), "--output", str(output)]
        assert main([*base, *inputs]) == 0
        answers.append(read_table(output))
    assert answers[0].num_rows > 20
    assert answers[0].equals(answers[1])


def test_a_streamed_join_names_the_file_that_is_not_sorted(tmp_path, capsys):
    place = folder(tmp_path / "l", [table([1, 2]), table([3, 1])])
    pq.write_table(table([1, 2, 3]), tmp_path / "r.parquet")
    arguments = [
        "join", "--left", str(place), "--right", str(tmp_path / "r.parquet"), "--time", "t",
        "--on", "k", "--within", "4", "--device", "software:", "--sorted",
        "--output", str(tmp_path / "out.parquet"),
    ]  # fmt: skip
    assert main(arguments) == 2
    assert "part-1.parquet' (the first is 0) has 1 after 3" in capsys.readouterr().err
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("times", [[1, 2, 3], [3, 1, 2]], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_only_the_named_columns_are_read_unless_one_is_missing(tmp_path, ending, times):
    place = folder(tmp_path / "in", [table(times)], ending)
    some = OrderedInput(Dataset(place), "t", "input", columns=["source"])
    assert some.schema.names == ["t", "source"]
    assert some.reader().read_all().to_pydict() == {"t": [1, 2, 3], "source": [0, 0, 0]}
    assert some.pipeline().sorted("t").collect().to_pydict() == {"t": [1, 2, 3], "source": [0] * 3}
    every = OrderedInput(Dataset(place), "t", "input", columns=["absent"])
    assert every.schema.names == ["t", "k", "source"]
