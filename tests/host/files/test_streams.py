# SPDX-License-Identifier: Apache-2.0
"""Files of every format, however their rows lie in them, give the answer of whole tables."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.api import asof_join, join
from host.files.reading import Dataset, read_table
from host.pipeline.inputs import Order, OrderedInput
from host.pipeline.sorting import SpillFolder

FORMATS = ("parquet", "csv", "json", "arrow")


def write(table, path, rows=3):
    """Write a table in pieces of some rows, and of none."""
    batches = table.to_batches(max_chunksize=rows)
    batches = [each for batch in batches for each in (batch, batch.slice(0, 0))]
    kind = path.suffix
    if kind == ".parquet":
        with pq.ParquetWriter(path, table.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    elif kind == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    elif kind == ".csv":
        csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


@st.composite
def sides(draw, name):
    """Return the files of an input: times and keys of each, sorted, nearly sorted, or neither."""
    span = draw(st.sampled_from([3, 40, 10**12]))
    parts = draw(
        st.lists(
            st.lists(st.tuples(st.integers(-span, span), st.integers(0, 3)), max_size=9),
            min_size=1, max_size=3,
        )
    )  # fmt: skip
    lies = draw(st.sampled_from(["sorted", "sorted by file", "nearly", "any"]))
    if lies != "any":
        parts = [sorted(part) for part in parts]
    if lies == "sorted":
        rows = iter(sorted(row for part in parts for row in part))
        parts = [[next(rows) for _ in part] for part in parts]
    if lies == "nearly" and len(parts[0]) > 1:
        parts[0][0], parts[0][1] = parts[0][1], parts[0][0]
    # The last file tells the types of JSON, and has the one row that an input needs.
    parts[-1] = [*parts[-1], (max((row[0] for part in parts for row in part), default=0), 1)]
    count, tables = 0, []
    for part in parts:
        times, keys = ([row[at] for row in part] for at in range(2))
        numbers = range(count, count + len(part))
        count += len(part)
        columns = {"t": times, "k": keys, name: numbers}
        tables.append(pa.table({key: pa.array(each, pa.int64()) for key, each in columns.items()}))
    return tables


def written(tables, folder, ending):
    """Write an input; return its path. A JSON file without a row has no columns either."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        write(table, folder / f"{number}.{ending}")
    return folder if len(tables) > 1 else folder / f"0.{ending}"


@settings(max_examples=40)
@given(sides("n"), sides("m"), st.data())
def test_files_give_the_answer_of_tables(tmp_path_factory, lefts, rights, data):
    folder = tmp_path_factory.mktemp("files")
    endings = [data.draw(st.sampled_from(FORMATS)) for _ in range(2)]
    paths = [
        written(tables, folder / side, ending)
        for side, tables, ending in zip("lr", (lefts, rights), endings, strict=True)
    ]
    tables = [pa.concat_tables(each) for each in (lefts, rights)]
    how = data.draw(st.sampled_from(["inner", "left", "full", "left_anti"]))
    words = {"time": "t", "on": "k", "how": how}
    window = data.draw(
        st.sampled_from([{"within": 0}, {"within": 5}, {"rows": 1}, {"within": 10**13}])
    )
    expected = join(*tables, **words, **window)
    assert join(*paths, **words, **window).to_pydict() == expected.to_pydict()
    (option, value) = next(iter(window.items()))
    asked = ["--left", str(paths[0]), "--right", str(paths[1]), "--time", "t", "--on", "k"]
    output = folder / "o.parquet"
    more = [f"--{option}", str(value), "--how", how, "--memory", "384MB", "--verify"]
    assert main(["join", *asked, *more, "--output", str(output)]) == 0
    assert pq.read_table(output).to_pydict() == expected.to_pydict()
    direction = data.draw(st.sampled_from(["backward", "forward", "nearest"]))
    limit = data.draw(st.sampled_from([None, 0, 7]))
    words = {"time": "t", "on": "k", "direction": direction, "within": limit}
    assert asof_join(*paths, **words).to_pydict() == asof_join(*tables, **words).to_pydict()
    asked[1:3], asked[3:] = [str(paths[0])], ["--time", "t", "--on", "k"]
    counted = ["aggregate", "--input", str(paths[0]), "--time", "t", "--on", "k", "--window", "10"]
    counted += ["--aggregate", "n=count", "--aggregate", "s=sum:n", "--verify"]
    assert main([*counted, "--output", str(output)]) == 0


@pytest.mark.parametrize(
    ("parts", "order"),
    [
        ([[1, 2, 2], [2, 5]], Order.FOUND),
        ([[4, 5], [1, 2]], Order.BY_FILE),
        ([[1, 3, 2], [9]], Order.NONE),
        ([[], [1], []], Order.FOUND),
    ],
    ids=["sorted", "by file", "not sorted", "empty files"],
)
@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_order_is_looked_at(tmp_path, parts, order, ending):
    tables = [pa.table({"t": pa.array(times, pa.int64())}) for times in parts]
    place = written(tables, tmp_path / "in", ending)
    found = OrderedInput(Dataset(place), "t", "left")
    assert found.order is order
    times = [time for part in parts for time in part]
    assert found.reader().read_all()["t"].to_pylist() == sorted(times)
    assert found.rows == len(times)


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_that_exceed_the_memory_are_sorted_through_files(tmp_path, monkeypatch, ending):
    """Rows of one time keep their order, in runs and across them."""
    rows = 140_000
    rng = np.random.default_rng(3)
    times, text = rng.integers(0, 50, rows), ["x" * 80] * rows
    table = pa.table({"t": times, "n": np.arange(rows), "text": text})
    path = tmp_path / f"in.{ending}"
    write(table, path, rows)
    runs = []
    write_run = SpillFolder.write
    monkeypatch.setattr(
        SpillFolder, "write", lambda self, run, size: (runs.append(run), write_run(self, run, size))
    )
    found = OrderedInput(Dataset(path), "t", "left", memory=0).reader().read_all()
    assert len(runs) > 2
    order = np.argsort(table["t"].to_numpy(), kind="stable")
    assert found["n"].to_numpy().tolist() == order.tolist()


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("100MB", "--memory is at least 384 MB, not 100 MB: libraries, a batch of each file"),
        ("383999999B", "--memory is at least 384 MB, not 384 MB"),
        ("much", "--memory takes a size such as 1GB, 1.5GiB or 700MB, not 'much'"),
        ("12", "--memory takes a size such as 1GB, 1.5GiB or 700MB, not '12'"),
    ],
)
@pytest.mark.parametrize("command", ["join", "asof", "aggregate"])
def test_a_size_that_will_not_do_is_refused(tmp_path, capsys, command, size, said):
    path, output = tmp_path / "in.parquet", tmp_path / "o.parquet"
    pq.write_table(pa.table({"t": [1]}), path)
    files = ["--left", str(path), "--right", str(path)]
    words = {"join": ["--within", "1"], "asof": []}.get(command, ["--window", "1"])
    if command == "aggregate":
        files, words = ["--input", str(path)], [*words, "--aggregate", "n=count"]
    asked = [command, *files, *words, "--time", "t", "--output", str(output), "--memory", size]
    assert main(asked) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()
    assert main([*asked[:-1], "384MB"]) == 0


# The types of text, which all of a file's values have.

CELLS = st.sampled_from(
    ["", "NA", "1", "-2", "0", "007", "0.5", "1e3", "nan", "true", "false", "2024-01-31",
     "10:00:00", "10:00:00.25", "2024-01-31 12:00:00", "2024-01-31T12:00:00Z",
     "2024-01-31 12:00:00.25", "9999-12-31 23:59:59.999999", "9223372036854775808",
     "98765432109876543210", "0x1F", "abc", " 5"]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(CELLS, min_size=1, max_size=4), st.integers(0, 2), st.lists(CELLS, max_size=3))
def test_cells_far_behind_change_the_type_as_cells_in_front_do(
    tmp_path_factory, first, times, last
):
    """A column of a CSV file has the type of all of its cells, wherever they are."""
    folder = tmp_path_factory.mktemp("cells")
    middle = [first[0]] * (1_500 * times)
    for name, cells in (("short", [*first, *last]), ("long", [*first, *middle, *last])):
        (folder / f"{name}.csv").write_text("n,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    short, long = (read_table(folder / f"{name}.csv") for name in ("short", "long"))
    assert long.schema == short.schema
    found = long["x"].to_pylist()
    kept = found[: len(first)] + found[len(first) + len(middle) :]
    assert list(map(repr, kept)) == list(map(repr, short["x"].to_pylist()))


@settings(max_examples=60)
@given(st.lists(CELLS.filter(lambda cell: cell not in ("NA",)), min_size=1, max_size=5))
def test_types_are_those_that_arrow_finds_where_it_finds_one(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    path.write_text("n,x\n" + "".join(f"1,{cell}\n" for cell in cells))
    arrow = csv.read_csv(
        path, convert_options=csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    )["x"]
    found = read_table(path)["x"]
    kinds = pa.types.is_string, pa.types.is_floating
    if not any(is_kind(arrow.type) for is_kind in kinds):
        assert found.type == arrow.type
        assert found.to_pylist() == arrow.to_pylist()


@pytest.mark.few(1)
@pytest.mark.parametrize("is_array", [False, True])
def test_json_of_several_blocks_has_the_types_of_all_of_its_values(tmp_path, is_array):
    rows = [
        {"t": n, "x": 1, "at": "2024-01-01 00:00:00", "s": "2024-01-01 00:00:00"}
        for n in range(40_000)
    ]
    rows[-1] |= {"x": 0.5, "at": "2024-01-01 00:00:00.25", "s": "soon", "late": 2**63}
    text = json.dumps(rows) if is_array else "\n".join(map(json.dumps, rows))
    path = tmp_path / "t.json"
    path.write_text(text)
    table = read_table(path)
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "t": "int64", "x": "double", "at": "timestamp[us]", "s": "string", "late": "uint64",
    }  # fmt: skip
    assert table["t"].to_pylist() == list(range(40_000))
    assert table["late"].to_pylist()[-1] == 2**63


@pytest.mark.parametrize(
    "text", ['[{"t": 1} {"t": 2}]', '[{"t": 1},]', "[1]", '[{"t": 1}', '[{"t": 1}] x', '[{"t": }]']
)
def test_an_array_that_is_no_json_is_refused(tmp_path, capsys, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    files = ["--left", str(path), "--right", str(path), "--output", str(tmp_path / "o.csv")]
    assert main(["join", *files, "--time", "t", "--within", "1"]) == 2
    assert "is not valid JSON: " in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()
