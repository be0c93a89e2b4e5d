# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.operators import aggregate
from host.operators.panes import Cells
from tests.hdl.aggregate.operators import aggregate_parameters
from tests.host.operators.small_aggregate import OPERATOR, ModelDevice

TRADES = (
    "time,item,price\n2026-01-01 10:00:01,A,5\n2026-01-01 10:00:03,B,7\n"
    "2026-01-01 10:00:59,A,\n2026-01-01 10:01:10,A,4\n"
)
ROWS = [
    ("10:00:00", "A", 2, 5, 5.0),
    ("10:00:00", "B", 1, 7, 7.0),
    ("10:01:00", "A", 1, 4, 4.0),
]


@pytest.fixture
def asked(tmp_path):
    """The options of an aggregation, but for its output."""
    (tmp_path / "trades.csv").write_text(TRADES)
    values = ["n=count", "total=sum:price", "mean=mean:price"]
    options = [text for value in values for text in ("--aggregate", value)]
    where = ["--input", str(tmp_path / "trades.csv"), "--time", "time", "--window", "1min"]
    return [*where, "--on", "item", *options, "--output"]


def rows_of(path):
    rows = pq.read_table(path).to_pylist()
    return [(str(row["window_start"])[11:], *list(row.values())[2:]) for row in rows]


def test_a_file_is_aggregated_and_verified(asked, tmp_path, capsys):
    output = str(tmp_path / "out.parquet")
    assert main(["aggregate", *asked, output, "--verify", "--explain"]) == 0
    said = capsys.readouterr()
    assert "n = count(*), total = sum(price), mean = mean(price) by item over 1min" in said.out
    assert "results leave as windows end: its input is SORTED by time" in said.out
    assert "verify: all 3 results agree with the reference operator" in said.err
    assert "4 rows, 3 results" in said.err
    assert rows_of(output) == ROWS


def test_a_device_gives_the_same_file(asked, tmp_path, capsys, monkeypatch):
    closed = []

    class Closing(ModelDevice):
        def close(self):
            closed.append(self)

    monkeypatch.setattr(aggregate, "open_aggregate", lambda uri: Closing())
    output = str(tmp_path / "out.parquet")
    options = [*asked, output, "--device", "sim:bundle", "--explain"]
    assert main(["aggregate", *options, "--verify"]) == 0
    said = capsys.readouterr()
    assert "SORTED by time; windows are kept by sim:bundle" in said.out
    assert "verify: all 3 results agree" in said.err
    assert "4 rows, 3 results, 3 cycles of sim:bundle, " in said.err
    assert rows_of(output) == ROWS
    assert main(["aggregate", *options, "--aggregate", "best=min:price", "--window", "9min"]) == 0
    # Nothing is written if the device cannot serve the query, and it is closed all the same.
    assert main(["aggregate", *options, "--window", "1h", "--advance", "1min"]) == 2
    assert "have 60 panes, but those of the accelerator at most 6" in capsys.readouterr().err
    assert len(closed) == 3


def test_the_simulated_device_is_generated_for_the_query(asked, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(aggregate, "operator_bundle", lambda document: document["name"])
    opened = []
    monkeypatch.setattr(
        aggregate, "open_aggregate", lambda uri: opened.append(uri) or ModelDevice()
    )
    output = str(tmp_path / "out.parquet")
    assert main(["aggregate", *asked, output, "--device", "sim:", "--verify"]) == 0
    assert "3 cycles of sim:, " in capsys.readouterr().err
    assert opened == ["sim:query"]
    assert rows_of(output) == ROWS


def test_a_device_of_an_operator_with_having_writes_nothing(asked, tmp_path, capsys, monkeypatch):
    described = OPERATOR.with_(having="total > 3")
    parameters = aggregate_parameters(described, cores=3, keys=13, panes=6)
    monkeypatch.setattr(aggregate, "open_aggregate", lambda uri: ModelDevice(described, parameters))
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, str(output), "--device", "sim:bundle"]) == 2
    said = capsys.readouterr().err
    assert "Operator 'small' of the accelerator has `having` (total > 3)" in said
    assert not output.exists()


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("software:", "Device 'software:' cannot aggregate, as only simulated ones can so far"),
        ("sim:nowhere", "Bundle 'nowhere' has no readable manifest"),
        ("what", "Device 'what' names no kind of device"),
    ],
)
def test_other_devices_are_refused(asked, tmp_path, capsys, device, said):
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, str(output), "--device", device]) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_sorted_files_stream_and_folders_merge(asked, tmp_path, capsys):
    table = csv.read_csv(tmp_path / "trades.csv")
    pq.write_table(table, tmp_path / "trades.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in (0, 1):
        pq.write_table(table.take(pa.array([part, part + 2])), folder / f"{part}.parquet")
    output = str(tmp_path / "out.parquet")
    for place in ("trades.parquet", "parts"):
        asked[1] = str(tmp_path / place)
        assert main(["aggregate", *asked, output, "--sorted", "--explain"]) == 0
        assert "results leave as windows end" in capsys.readouterr().out
        assert rows_of(output) == ROWS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--window", "5"], "must be a duration, such as 5min, not 5"),
        (["--window", "0.5"], "--window takes a whole number, not 0.5"),
        (["--advance", "soon"], "--advance 'soon' is not a duration"),
        (["--advance", "2min"], "must advance by at most that"),
        (["--aggregate", "count"], "--aggregate takes NAME=FUNCTION or NAME=FUNCTION:COLUMN, not"),
        (["--aggregate", "n=sum:price"], "--aggregate names 'n' twice"),
        (["--aggregate", "x=sum:item"], "Column 'item' has type string, which cannot be used here"),
        (["--on", "what"], "There is no column 'what' in the input table"),
        (["--time", "item"], "Column 'input.item' has type string"),
    ],
)
def test_wrong_options_are_named_and_write_nothing(asked, tmp_path, capsys, options, said):
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, str(output), *options]) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_rows_that_are_not_sorted_are_named(asked, tmp_path, capsys):
    lines = TRADES.splitlines()
    (tmp_path / "trades.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, str(output), "--sorted"]) == 2
    assert "column 'time': row 1 (the first is 0) has 2026-01-01 10:00:59" in (
        capsys.readouterr().err
    )
    assert not output.exists()


def test_a_column_that_is_there_twice_is_named_where_it_is_asked_for(asked, tmp_path, capsys):
    (tmp_path / "trades.csv").write_text("time,item,price,more,more\n2026-01-01 10:00:01,A,5,6,7\n")
    output = tmp_path / "out.csv"
    assert main(["aggregate", *asked, str(output)]) == 0
    output.unlink()
    for option in (["--on", "more"], ["--aggregate", "most=max:more"]):
        assert main(["aggregate", *asked, str(output), *option]) == 2
        said = "has several columns called 'more'; rename all but one."
        assert said in capsys.readouterr().err
        assert not output.exists()


def test_the_input_is_not_overwritten(asked, tmp_path, capsys):
    assert main(["aggregate", *asked, str(tmp_path / "trades.csv")]) == 2
    assert "is the same file as --input" in capsys.readouterr().err


def test_a_wrong_answer_is_found_out(asked, tmp_path, capsys, monkeypatch):
    with_tuples = Cells.with_tuples
    monkeypatch.setattr(
        Cells,
        "with_tuples",
        lambda cells, keys, panes, *more: with_tuples(cells, keys, panes * 0, *more),
    )
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, str(output), "--verify"]) == 1
    assert "Verification failed: 3 results are missing, such as the one of" in (
        capsys.readouterr().err
    )
    assert not output.exists()


INF, NAN = float("inf"), float("nan")
FAR = 253_402_300_800 * 10_000
SORTED_VALUES = {
    "infinities of both signs": (pa.array([INF, -INF, 1.0]), ["sum", "mean", "min", "max"]),
    "infinity": (pa.array([INF, INF, None]), ["sum", "mean", "min", "max"]),
    "NaN": (pa.array([INF, NAN, 1.0]), ["sum", "mean", "min", "max"]),
    "sums beyond all floats": (pa.array([1e308, 1e308, -1e308]), ["sum", "mean"]),
    "sums beyond all floats in the end": (pa.array([-1e308, -1e308, -1e308]), ["sum", "mean"]),
    "sums beyond 64 bits": (pa.array([(1 << 63) - 1] * 3), ["mean", "max"]),
    "far times": (pa.array([FAR, None, -FAR], pa.timestamp("ms")), ["min", "max", "count"]),
    "nanoseconds": (pa.array([1, 2, 1], pa.timestamp("ns", "Europe/Berlin")), ["min", "max"]),
    "nanoseconds of a day": (pa.array([1, 2, 1], pa.time64("ns")), ["min", "max"]),
    "far dates": (pa.array([2_932_897, None, 0], pa.date32()), ["min", "max"]),
    "long durations": (pa.array([(1 << 63) - 1, 1, 1], pa.duration("s")), ["min", "max"]),
    "16 bits": (pa.array([1.5, -0.0, 0.0], pa.float16()), ["min", "max", "sum", "mean"]),
}


@pytest.mark.few(12)
@pytest.mark.parametrize("name", SORTED_VALUES)
@pytest.mark.parametrize("unit", ["integer", "ms"])
def test_whatever_values_and_times_are_answers_are_verified(tmp_path, capsys, name, unit):
    values, functions = SORTED_VALUES[name]
    times = (
        pa.array([-FAR, 5, FAR])
        if unit == "integer"
        else pa.array([-FAR, 5, FAR], pa.timestamp("ms"))
    )
    for time in (times, pa.array([1, 2, 3], times.type)):
        pq.write_table(pa.table({"t": time, "x": values}), tmp_path / "in.parquet")
        asked = ["--input", str(tmp_path / "in.parquet"), "--time", "t", "--on", "x"]
        asked += ["--window", "10" if unit == "integer" else "10ms"]
        for function in functions:
            asked += ["--aggregate", f"{function}=count:x"]
            asked += ["--aggregate", f"{function}_x={function}:x"]
        for more in ([], ["--sorted"]):
            for keyed in (asked, [each for each in asked if each not in ("--on", "x")]):
                output = str(tmp_path / "out.parquet")
                assert main(["aggregate", *keyed, *more, "--verify", "--output", output]) == 0
    said = capsys.readouterr().err
    assert said.count("agree with the reference operator") == 8
    assert "Warning" not in said


def test_a_sum_beyond_64_bits_names_its_aggregate(tmp_path, capsys):
    pq.write_table(pa.table({"t": [1, 2], "x": [(1 << 63) - 1] * 2}), tmp_path / "in.parquet")
    asked = ["--input", str(tmp_path / "in.parquet"), "--time", "t", "--window", "10"]
    output = tmp_path / "out.parquet"
    assert main(["aggregate", *asked, "--aggregate", "total=sum:x", "--output", str(output)]) == 2
    assert "Column 'total' holds 18446744073709551614, outside" in capsys.readouterr().err
    assert not output.exists()


def test_times_beyond_the_calendar_of_python_are_named_where_they_are_out_of_order(
    tmp_path, capsys
):
    times = pa.array([FAR, 5], pa.timestamp("ms"))
    pq.write_table(pa.table({"t": times}), tmp_path / "in.parquet")
    asked = ["--input", str(tmp_path / "in.parquet"), "--time", "t", "--window", "10ms", "--sorted"]
    output = str(tmp_path / "out.parquet")
    assert main(["aggregate", *asked, "--aggregate", "n=count", "--output", output]) == 2
    assert f"has 1970-01-01 00:00:00.005000 after {FAR} ms; sort" in capsys.readouterr().err
