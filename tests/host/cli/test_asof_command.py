# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.engine.asof import AsofSearch

TRADES = "time,symbol,price\n2026-11-02 10:00:03,A,5\n2026-11-02 10:00:01,B,7\n"
QUOTES = (
    "at,symbol,bid\n2026-11-02 10:00:00,A,4\n2026-11-02 10:00:02,A,6\n2026-11-02 10:00:02,B,8\n"
)


@pytest.fixture
def files(tmp_path):
    """The options that name a table of trades, one of quotes, and the result."""
    for name, text in (("trades", TRADES), ("quotes", QUOTES)):
        (tmp_path / f"{name}.csv").write_text(text)
    inputs = ["--left", str(tmp_path / "trades.csv"), "--right", str(tmp_path / "quotes.csv")]
    return [*inputs, "--time", "time:at", "--on", "symbol", "--output"]


def bids(*arguments):
    assert main(["asof", *arguments]) == 0
    path = next(text for text in arguments if text.endswith("out.parquet"))
    table = pq.read_table(path)
    return list(zip(table["symbol"].to_pylist(), table["bid"].to_pylist(), strict=True))


def test_files_are_joined_and_verified(files, tmp_path, capsys):
    output = str(tmp_path / "out.parquet")
    assert bids(*files, output, "--verify", "--explain") == [("B", None), ("A", 6)]
    said = capsys.readouterr()
    assert "the last right row with right.at <= left.time and left.symbol" in said.out
    assert "verify: all 2 results agree with the reference join" in said.err
    assert "2 + 3 rows, 2 results" in said.err
    assert bids(*files, output, "--direction", "forward", "--how", "inner") == [("B", 8)]
    assert bids(*files, output, "--direction", "nearest", "--within", "1s") == [
        ("B", 8),
        ("A", 6),
    ]
    assert bids(*files, output, "--no-allow-exact-matches", "--within", "999ms") == [
        ("B", None),
        ("A", None),
    ]


def test_a_device_can_find_the_right_rows(files, tmp_path, capsys):
    output = str(tmp_path / "out.parquet")
    options = ["--device", "software:", "--verify", "--explain"]
    assert bids(*files, output, *options) == [("B", None), ("A", 6)]
    said = capsys.readouterr()
    assert "device   software:, windows of up to 1073741824 rows; a scan finds every" in said.out
    assert "on software:, written to" in said.err
    assert "verify: all 2 results agree with the reference join" in said.err


def test_the_result_can_be_a_csv_file(files, tmp_path):
    output = tmp_path / "out.csv"
    assert main(["asof", *files, str(output)]) == 0
    names = ["time", "symbol", "price", "at", "symbol_right", "bid"]
    assert csv.read_csv(output).column_names == names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--within", "5"], "The distance 5 is a plain number"),
        (["--within", "1.5"], "--within takes a whole number, not 1.5"),
        (["--within", "soon"], "--within 'soon' is not a duration"),
        (["--within=-1s"], "within must be a duration or a whole number of at least 0"),
        (["--device", "card:0"], "card:0"),
        (["--device", "software:", "--device-wait", "soon"], "Option --device-wait: "),
        (["--direction", "up"], "direction must be one of"),
        (["--how", "full"], "not 'full'"),
        (["--on", "symbol:name"], "no column 'name' in the right table"),
        (["--on", "a:b:c"], "--on takes LEFT:RIGHT"),
        (["--sorted"], "row 1 (the first is 0) has 2026-11-02 10:00:01 after 2026-11-02 10:00:03"),
    ],
)
def test_wrong_options_are_named_and_write_nothing(files, tmp_path, capsys, options, said):
    output = tmp_path / "out.parquet"
    assert main(["asof", *files, str(output), *options]) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_a_wrong_answer_is_found_out(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(AsofSearch, "parts", lambda *sides: iter([pa.array([1, 1]).to_numpy()]))
    assert main(["asof", *files, str(tmp_path / "out.parquet"), "--verify"]) == 1
    assert "Verification failed: 2 results, but the reference join has" in capsys.readouterr().err
