# SPDX-License-Identifier: Apache-2.0
"""Files as the command reads and writes them: every value is kept, or an error names its place."""

import bz2
from datetime import date, datetime
from decimal import Decimal
import gzip
import json

import pyarrow as pa
from pyarrow import orc
import pyarrow.parquet as pq
import pytest

from host import FailureError, UsageError
from host.cli import command
from spark_offload.__main__ import main
from spark_offload.cli.files import Source, Target
from spark_offload.errors import kit_errors
from tests.host.tables import bundle

FLAGS = ["--time", "t", "--within", "5", "--device", "software:"]
ROWS = [(1, "a"), (2, None), (3, "b c")]
TABLE = pa.table({"t": [t for t, _ in ROWS], "k": [k for _, k in ROWS]})
CSV = "t,k\n1,a\n2,\n3,b c\n"
LINES = '{"t": 1, "k": "a"}\n{"t": 2, "k": null}\n{"t": 3, "k": "b c"}\n'
ARRAY = json.dumps([{"t": t, "k": k} for t, k in ROWS], indent=1)


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch):
    """A busy machine may take so long that there would be one."""
    monkeypatch.setattr(command, "PERIOD", 3600.0)


@pytest.fixture(scope="module")
def session(spark):
    """A session with the settings of the command."""
    session = spark.newSession()
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    return session


def rows_of(session, path, **options):
    """Return the rows of an input as tuples, and its columns."""
    with kit_errors():
        frame = Source.of("--left", str(path)).read(session, options)
        return [tuple(row) for row in frame.collect()], frame.columns


def written(path, content):
    """Write text, bytes or a table to a path, whose folders are made; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pa.Table):
        (orc.write_table if path.suffix == ".orc" else pq.write_table)(content, path)
    else:
        data = content if isinstance(content, bytes) else content.encode()
        compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
        path.write_bytes(compress(data))
    return path


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.parquet", TABLE),
        ("x.orc", TABLE),
        ("x.csv", CSV),
        ("x.CSV", f"\ufeff{CSV}".replace("\n", "\r\n")),
        ("semicolon.csv", CSV.replace(",", ";")),
        ("x.tsv", CSV.replace(",", "\t")),
        ("x.csv.gz", CSV),
        ("x.csv.bz2", CSV),
        ("x.json", LINES),
        ("x.jsonl", LINES),
        ("array.json", ARRAY),
        ("x.json.gz", ARRAY),
        ("a [b] {c}*?.parquet", TABLE),
    ],
)
def test_formats_hold_the_same_rows(session, tmp_path, name, content):
    rows, columns = rows_of(session, written(tmp_path / name, content))
    assert rows == ROWS
    assert columns == ["t", "k"], "in the order of the file"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_names_of_csv_are_those_of_the_header(session, tmp_path, separator):
    # An index of pandas has no name; Spark's own names of columns may also be those of a file.
    for header in (["", "t", "k"], ["t", "k", ""], ["_c0", "_c1", "k2"], ["t", "", "_c2"]):
        for quote in ("", '"'):
            first = separator.join(f"{quote}{name}{quote}" for name in header)
            rows = (separator.join(cells) for cells in (["1", "2.5", "x"], ["3", "4.5", "y"]))
            file = written(tmp_path / "x.csv", "\n".join([first, *rows, ""]))
            assert rows_of(session, file) == ([(1, 2.5, "x"), (3, 4.5, "y")], header)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("t,k\n", {}, "has no rows, and a CSV file tells the types of its columns by its values"),
        ("t,k,t\n1,a,2\n", {}, "has several columns called 't'; rename all but one"),
        ("t,,k,\n1,a,2,b\n", {}, "has several columns called ''; rename all but one"),
        (CSV.encode("utf-16"), {}, "The header of .* holds bytes that are no UTF-8; name the enc"),
        (CSV, {"schema": "t BIGINT k STRING"}, "Syntax error at or near 'k'"),
    ],
)
def test_a_header_or_schema_that_will_not_do_is_told(session, tmp_path, content, options, words):
    with pytest.raises(UsageError, match=words):
        rows_of(session, written(tmp_path / "x.csv", content), **options)


def test_folders_patterns_and_addresses_are_inputs(session, tmp_path):
    for day in (1, 2):
        written(tmp_path / "days" / f"day=2024-05-0{day}" / "part.csv", f"t,k\n{day},x\n")
        written(tmp_path / "plain" / f"{day}.csv", f"t,k\n{day},x\n")
    written(tmp_path / "plain" / "_SUCCESS", "")
    written(tmp_path / "plain" / ".notes", "")
    plain = [(1, "x"), (2, "x")]
    days = [(1, "x", date(2024, 5, 1)), (2, "x", date(2024, 5, 2))]
    for path, wanted in (
        ("plain", plain),
        ("plain/*.csv", plain),
        ("pl*n", plain),
        ("**/[0-9].csv", plain),
        ("days", days),
        ("days/*", days),
        ("days/*/*.csv", days),
        ("days/day=2024-05-02", [(2, "x")]),  # as in Spark
    ):
        rows, _ = rows_of(session, tmp_path / path)
        assert sorted(rows) == wanted, path
    assert sorted(rows_of(session, f"file:{tmp_path}/plain")[0]) == plain


@pytest.mark.parametrize(
    ("files", "path", "words"),
    [
        ({}, "nowhere.csv", ["there is no such file or folder"]),
        ({"a.csv": CSV}, "*.parquet", ["no file matches"]),
        ({"f/a.csv": CSV, "f/b.json": LINES}, "f", ["csv and json", "one format"]),
        ({"f/a.csv": CSV, "f/read.me": ""}, "f", ["read.me", "no format"]),
        ({"f/_SUCCESS": ""}, "f", ["has no files"]),
        ({"f/a.csv": CSV, "f/more/b.csv": CSV}, "f", ["'more'", "/**/*"]),
        ({"f/a.json": LINES, "f/b.json": ARRAY}, "f", ["an array", "one object a line"]),
        ({"a.parquet": "text"}, "a.parquet", ["cannot be read", "is not a Parquet file"]),
        ({"a.json": '{"t": 1}\n{"t": '}, "a.json", ["cannot be read", "Unexpected end"]),
    ],
)
def test_what_is_no_input_is_told_before_rows_are_read(session, tmp_path, files, path, words):
    for name, content in files.items():
        written(tmp_path / name, content)
    with pytest.raises(UsageError) as caught:
        Source.of("--left", str(tmp_path / path)).read(session, {})
    message = str(caught.value)
    assert message.startswith(f"--left {str(tmp_path / path)!r} ")
    assert [word for word in words if word not in message] == []


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["12345678901234567890", "12345678901234567891"], "decimal(20,0)",
         [Decimal("12345678901234567890"), Decimal("12345678901234567891")]),
        (["1.5", "NaN"], "double", [1.5, float("nan")]),
        (["2024-05-01", "0001-01-01"], "date", [date(2024, 5, 1), date(1, 1, 1)]),
        (["2024-05-01 10:11:12.000001", "2024-05-01T10:11"], "timestamp_ntz",
         [datetime(2024, 5, 1, 10, 11, 12, 1), datetime(2024, 5, 1, 10, 11)]),
        # No date, and finer than Spark has: text, in place of what Spark makes of them.
        (["10:11:12", "23:59:59"], "string", ["10:11:12", "23:59:59"]),
        (["2024-05-01 10:11:12.123456789"], "string", ["2024-05-01 10:11:12.123456789"]),
        (['""', "", '" a "', '"b ""c"""', '"d\ne;,"'], "string",
         ["", None, " a ", 'b "c"', "d\ne;,"]),
    ],
)  # fmt: skip
def test_cells_of_csv_are_what_they_look_like(session, tmp_path, cells, kind, values):
    text = "".join(f"{cell},1\n" for cell in cells)
    source = Source.of("--left", str(written(tmp_path / "x.csv", f"x,y\n{text}")))
    frame = source.read(session, {})
    assert frame.dtypes[0] == ("x", kind)
    assert repr([row.x for row in frame.collect()]) == repr(values)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x,y\n1,2\n3\n", ["x.csv", "Malformed CSV record: 3"]),
        ("x,y\n1,2\n3,4,5\n", ["x.csv", "Malformed CSV record: 3,4,5"]),
        (f"x,y\n{'1' * 40},2\n", ["Column 'x' of --left", "more than 15 digits", "schema="]),
        (f"x,y\n{10**19},2\n1.5,2\n", ["Column 'x' of --left", "more than 15 digits"]),
        (b"x,y\nM\xfcller,2\n", ["Column 'x' of --left", "no UTF-8", "encoding=ISO-8859-1"]),
        ({"a.csv": "x,y\n1,2\n", "b.csv": "y,x\n3,4\n"}, ["header does not conform"]),
    ],
)
def test_cells_that_cannot_be_kept_are_an_error(session, tmp_path, content, words):
    path = tmp_path / "x.csv"
    if isinstance(content, dict):
        for name, text in content.items():
            written(path / name, text)
    else:
        written(path, content)
    with pytest.raises((UsageError, FailureError)) as caught:
        rows_of(session, path)
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value).splitlines()) == 1


def test_options_of_reading_csv_are_sparks(session, tmp_path):
    path = written(tmp_path / "x.csv", f"{'1' * 40}|M\xfcller\nNA|b\n".encode("latin-1"))
    schema = "x string, y string"
    options = {"header": "false", "encoding": "ISO-8859-1", "nullvalue": "NA", "schema": schema}
    assert rows_of(session, path, **options)[0] == [("1" * 40, "M\xfcller"), (None, "b")]
    with pytest.raises(UsageError, match=r"--csv-option seperator=.* none of Spark's .* sep,"):
        rows_of(session, path, seperator=";")


ODD = pa.table(
    {
        "t": [0, 100, 200, 300],
        "text": ["", None, ' a "b",\n c ', "\t;'\\"],
        "at": pa.array([0, 1, None, 253402300799999999], pa.timestamp("us")),
        "zoned": pa.array([1, None, 253402300799999999, 0], pa.timestamp("us", "UTC")),
        "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31), date(2024, 2, 29)]),
        "number": [float("nan"), float("inf"), None, 5e-324],
        "id": pa.array([Decimal(10**19), Decimal(10**19 + 1), None, Decimal(1)]),
        "none": pa.array([None] * 4, pa.string()),
    }
)


@pytest.mark.few(2)
@pytest.mark.parametrize("ending", ["parquet", "orc", "csv", "json"])
def test_what_is_written_reads_back_as_it_was(spark, session, tmp_path, capsys, ending):
    """The command itself compares what stands in the files with Spark's own join."""
    place = str(written(tmp_path / "odd.parquet", ODD))
    output = tmp_path / f"out.{ending}"
    words = ["join", "--left", place, "--right", place, *FLAGS, "--verify", "--sort-by-time"]
    assert main([*words, "--output", str(output)]) == 0, capsys.readouterr().err
    assert "All 4 results agree" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.parquet", output.name]
    found, columns = rows_of(session, output)
    wanted, names = rows_of(session, place)
    assert columns == names + [f"{name}_right" for name in names]
    if ending == "json":  # whose numbers and dates say no more
        assert [row[0] for row in found] == [row[0] for row in wanted]
    else:
        assert repr(found) == repr([row + row for row in wanted])


def test_a_name_with_an_ending_is_a_file_and_another_one_a_folder(spark, tmp_path, capsys):
    place = str(written(tmp_path / "in.parquet", TABLE))
    words = ["join", "--left", place, "--right", place, *FLAGS]
    for output, options, files in (
        ("a.csv", [], "a.csv"),
        ("b", [], "b/part-*.parquet"),
        ("c.csv/", [], "c.csv/part-*.csv"),
        ("d.json", ["--no-single-file"], "d.json/part-*.json"),
        ("a.csv", ["--how", "semi"], "a.csv"),
    ):
        assert main([*words, "--output", f"{tmp_path}/{output}", *options]) == 0
        assert [path.stat().st_size > 0 for path in tmp_path.glob(files)] == [True], files
    capsys.readouterr()
    (tmp_path / "file").touch()
    for output, options, reason in (
        ("b", [], "exists; a folder of files is made anew"),
        ("file", [], "exists; a folder"),
        ("x.xlsx", [], "must end in one of .parquet"),
        ("x", ["--single-file"], "must end in one of .parquet"),
        ("in.parquet/", [], "exists"),
        ("no/folder/x.csv", [], "does not exist"),
    ):
        assert main([*words, "--output", f"{tmp_path}/{output}", *options]) == 2
        assert reason in capsys.readouterr().err
    assert main([*words, "--output", f"{tmp_path}/x.csv", "--csv-option", "sep=;"]) == 2
    assert "neither --left nor --right is one" in capsys.readouterr().err
    assert main([*words, "--output", f"{tmp_path}/x.csv", "--csv-option", "mode=foo"]) == 2
    assert "mode is one of FAILFAST, DROPMALFORMED" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.csv", "b", "c.csv", "d.json", "file", "in.parquet",
    ]  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("single", [True, False])
def test_rows_are_sorted_by_time_where_asked_for(spark, tmp_path, single):
    """Rows alone stand at their own time."""
    times = [(37 * row) % 101 for row in range(101)]
    for name, keys in (("left", 7), ("right", 5)):
        table = pa.table({"t": times, "k": [f"{row % keys}" for row in times]})
        written(tmp_path / f"{name}.parquet", table)
    output = tmp_path / ("out.parquet" if single else "out")
    words = ["--left", f"{tmp_path}/left.parquet", "--right", f"{tmp_path}/right.parquet"]
    flags = ["--on", "k", "--how", "full", "--output", str(output), "--sort-by-time"]
    assert main(["join", *words, *FLAGS, *flags]) == 0
    files = [output] if single else sorted(output.glob("part-*"))
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    both = [[time for time in (row["t"], row["t_right"]) if time is not None] for row in found]
    assert len(found) > 101
    assert [max(pair) for pair in both] == sorted(max(pair) for pair in both)


def test_files_of_several_tasks_become_one_in_their_order(session, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_offload.cli.files.MERGED_ROWS", 7)
    rows = session.range(0, 100, 1, 3).selectExpr("id", "if(id % 3 = 0, null, id * 1.50BD) AS d")
    target = Target.of(str(tmp_path / "out.parquet"), None)
    with target.staged(session) as place:
        target.write(rows, place)
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]
    found = session.read.parquet(str(tmp_path / "out.parquet"))
    assert found.schema.simpleString() == rows.schema.simpleString()
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(100))
    assert found.collect() == rows.collect()


def test_an_address_of_hadoop_is_written_whole_or_not_at_all(spark, session, tmp_path, capsys):
    """Of a file system that only Hadoop reaches, which here is a view of a folder."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.default.link./data", f"file://{tmp_path}")
    written(tmp_path / "in.parquet", TABLE)
    words = ["join", *FLAGS, "--left", "viewfs:///data/in.parquet", "--right"]
    place = "viewfs:///data/*n.parquet"
    for output, code in (("a.csv", 0), ("b", 0), ("a.csv", 0), ("b", 2)):
        assert main([*words, place, "--output", f"viewfs:///data/{output}"]) == code
    assert "exists; a folder" in capsys.readouterr().err
    assert main([*words, "viewfs:///data", "--output", f"{tmp_path}/c.csv"]) == 2
    assert "name its files: viewfs:///data/*.parquet" in capsys.readouterr().err
    assert len(rows_of(session, tmp_path / "a.csv")[0]) == len(ROWS) ** 2
    assert len(rows_of(session, tmp_path / "b")[0]) == len(ROWS) ** 2
    names = {path.name for path in tmp_path.iterdir()}
    assert {name for name in names if not name.endswith(".crc")} == {"in.parquet", "a.csv", "b"}


def test_where_no_accelerator_serves_software_joins_and_says_so(spark, tmp_path, capsys):
    equality = f"software:{bundle(tmp_path / 'equality', comparator='equality')}"
    place = str(written(tmp_path / "in.parquet", pa.table({"t": [1, 2], "x": [0.5, 1.75]})))
    words = ["join", "--left", place, "--right", place, "--output", f"{tmp_path}/out.csv"]
    flags = ["--band", "x:x:0:1", "--time", "t", "--within", "5", "--device", equality]
    assert main([*words, *flags]) == 0
    message = capsys.readouterr().err
    assert "2 + 2 rows, 2 results" in message
    assert "not offloaded: " in message
