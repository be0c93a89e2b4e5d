# SPDX-License-Identifier: Apache-2.0
"""``python -m spark_offload``: files in, files out; or one line that says why not."""

import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
from py4j.protocol import Py4JError
import pyarrow as pa
from pyarrow import csv
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
import pytest

from host import FailureError
from host.cli import command
from spark_offload import stream_join, task_error
from spark_offload.__main__ import main
from spark_offload.cli.files import Source
from tests.halves import half

ROOT = Path(__file__).resolve().parents[2]

TRADES = {"t": [4, 1, 9, 4], "k": ["b", "a", "a", None], "x": pa.array([7, 5, 3, 1], pa.uint32())}
QUOTES = {"time": [2, 4, 11], "k": ["a", "b", "a"], "y": [1.5, 2.5, 3.5]}
FLAGS = [
    *("--time", "t:time", "--on", "k:k", "--within", "8", "--sort-by-time"),
    *("--device", "software:"),
]
EXPECTED = [
    {"t": 1, "k": "a", "x": 5, "time": 2, "k_right": "a", "y": 1.5},
    {"t": 4, "k": "b", "x": 7, "time": 4, "k_right": "b", "y": 2.5},
    {"t": 9, "k": "a", "x": 3, "time": 2, "k_right": "a", "y": 1.5},
    {"t": 9, "k": "a", "x": 3, "time": 11, "k_right": "a", "y": 3.5},
]


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch):
    """A busy machine may take so long that there would be one."""
    monkeypatch.setattr(command, "PERIOD", 3600.0)


@pytest.fixture
def files(tmp_path):
    """Two input files, and a place for the output."""
    pq.write_table(pa.table(TRADES), tmp_path / "trades.parquet")
    csv.write_csv(pa.table(QUOTES), tmp_path / "quotes.csv")
    return [
        "--left", str(tmp_path / "trades.parquet"),
        "--right", str(tmp_path / "quotes.csv"),
        "--output", str(tmp_path / "out.parquet"),
    ]  # fmt: skip


def test_folders_of_sorted_files_are_joined(spark, files, tmp_path):
    for place, (name, columns) in {1: ("trades", TRADES), 3: ("quotes", QUOTES)}.items():
        order = {"trades": "t", "quotes": "time"}[name]
        table = pa.table(columns).sort_by(order)
        files[place] = str(tmp_path / name)
        (tmp_path / name).mkdir()
        for part in range(2):
            rows = table.take(list(range(part, table.num_rows, 2)))
            pq.write_table(rows, tmp_path / name / f"{part}.parquet")
    assert main(["join", *files, *FLAGS, "--sorted"]) == 0
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == EXPECTED


def test_join_writes_one_file_in_the_order_of_time(spark, files, tmp_path, capsys):
    assert main(["join", *files, *FLAGS, "--verify", "--explain"]) == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pylist() == EXPECTED
    assert table.schema.field("x").type == pa.int64(), "the type in which Spark reads it"
    printed = capsys.readouterr()
    assert "All 4 results agree with Spark's own join" in printed.err
    assert "by the equal columns k" in printed.out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.parquet", "quotes.csv", "trades.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (["--time", "t:when"], 2, ["'when'", "right"]),
        (["--on", "x:k"], 2, ["'left.x'", "'right.k'"]),
        (["--on", "k:y"], 2, ["'right.y'", "double"]),
        (["--within", "5 parsecs"], 2, ["5 parsecs"]),
        (["--sorted"], 2, ["left.t", "row 1", "sort"]),
        (["--left", "nowhere.csv"], 2, ["nowhere.csv"]),
        (["--output", "out.xlsx"], 2, ["out.xlsx", ".parquet"]),
        (["--output", "no/such/folder/out.csv"], 2, ["no/such/folder"]),
        (["--device", "sim:/nowhere"], 2, ["/nowhere", "python -m sim build"]),
    ],
)
def test_bad_input_is_one_line_and_no_file(spark, files, tmp_path, capsys, change, code, words):
    assert main(["join", *files, *FLAGS, *change]) == code
    message = capsys.readouterr().err
    assert message.startswith("python -m spark_offload join: ")
    assert len(message.splitlines()) == 1
    assert [word for word in words if word not in message] == []
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("command", "option"), [("join", "--output"), ("demo", "--output"), ("demo", "--report")]
)
def test_an_output_that_is_an_input_is_refused_before_spark_starts(
    files, tmp_path, capsys, monkeypatch, command, option
):
    monkeypatch.setattr("spark_offload.cli.join.open_session", None)
    before = (tmp_path / "trades.parquet").read_bytes()
    (tmp_path / "link.parquet").hardlink_to(tmp_path / "trades.parquet")
    assert main([command, *files, *FLAGS, option, str(tmp_path / "link.parquet")]) == 2
    message = capsys.readouterr().err
    assert f"{option} {str(tmp_path / 'link.parquet')!r} is the same file as --left" in message
    assert len(message.splitlines()) == 1
    assert (tmp_path / "trades.parquet").read_bytes() == before


def test_an_error_inside_an_executor_is_one_line_too(spark, files, tmp_path, capsys):
    pq.write_table(pa.table(TRADES | {"t": [4, 1, None, 4]}), tmp_path / "trades.parquet")
    (tmp_path / "out.parquet").write_text("of before")
    assert main(["join", *files, *FLAGS]) == 2
    message = capsys.readouterr().err
    assert "left.t" in message
    assert "null" in message
    assert len(message.splitlines()) == 1
    assert (tmp_path / "out.parquet").read_text() == "of before"
    assert len(list(tmp_path.iterdir())) == 3, "nothing half-written stays"


def test_a_window_that_outgrows_its_device_goes_on_and_says_so(
    spark, files, tmp_path, capsys, software_bundle
):
    for name in ("trades", "quotes"):
        pq.write_table(pa.table({"t": list(range(100))}), tmp_path / f"{name}.parquet")
    files[3] = str(tmp_path / "quotes.parquet")
    assert main(["join", *files, "--time", "t", "--within", "90", "--device", software_bundle]) == 0
    assert "in software" in capsys.readouterr().err
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 100 * 100 - 9 * 10


def test_times_finer_than_spark_has_are_refused(spark, files, tmp_path, capsys):
    """Those in nanoseconds that are whole microseconds, as pandas writes them, are read."""
    for code, nanoseconds in ((0, 2_000), (2, 1_001)):
        for name, zone in (("trades", None), ("quotes", "Europe/Berlin")):
            rows = pa.table({"t": pa.array([nanoseconds], pa.timestamp("ns", zone))})
            pq.write_table(rows, tmp_path / f"{name}.parquet")
            place = str(tmp_path / f"{name}.parquet")
            flags = [*("--left", place, "--right", place, *files[4:]), "--time", "t:t"]
            assert main(["join", *flags, "--within", "1s", "--device", "software:"]) == code
            message = capsys.readouterr().err
            if code:
                assert "Column 't' of --left" in message or "Column 't' of --right" in message
                assert "finer than a microsecond" in message
            else:
                (row,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
                assert row["t"] == row["t_right"]
                assert row["t"].microsecond == 2
                assert (row["t"].tzinfo is None) == (zone is None)


@pytest.mark.long
@pytest.mark.timeout(1900)
@pytest.mark.parametrize(
    ("rows", "most"), [(50_000, "100k"), pytest.param(5_000_000, "16m", marks=pytest.mark.long)]
)
def test_a_process_of_its_own_is_quiet_and_holds_no_rows(tmp_path, rows, most):
    """No log noise, no environment set by hand; neither its Java nor its Python holds the rows.

    There are about as many results as rows, far beyond what the driver may collect.
    """
    keys, reach = 1_000, 500
    generator = np.random.default_rng(5)
    sides = []
    for name in ("left", "right"):
        times = np.sort(generator.integers(0, rows, rows))
        sides.append((times, generator.integers(0, keys, rows)))
        columns = {"t": times, "k": sides[-1][1], "row": np.arange(rows)}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    program = (
        "import sys; from spark_offload.__main__ import main; code = main(); "
        "print(*(line for line in open('/proc/self/status') if 'VmHWM' in line)); sys.exit(code)"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-c", program, "join", "--output", "out.parquet"),
            *("--left", "left.parquet", "--right", "right.parquet", "--time", "t"),
            *("--on", "k", "--within", str(reach), "--device", "software:"),
            *("--conf", "spark.driver.memory=512m"),
            *("--conf", f"spark.driver.maxResultSize={most}"),
        ],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout.split()[1]) < 300_000, "kilobytes of the driver's Python process"
    # By key and time in one number, the partners of a left row are a range of the right rows.
    codes = [row_keys * (4 * rows) + times for times, row_keys in sides]
    order = np.argsort(codes[1], kind="stable")
    first = np.searchsorted(codes[1][order], codes[0] - reach, "left")
    behind = np.searchsorted(codes[1][order], codes[0] + reach, "right")
    *stages, last = done.stderr.splitlines()
    results = int(np.sum(behind - first))
    assert last.startswith(f"{rows} + {rows} rows, {results} results, "), done.stderr
    assert [line for line in stages if not line.startswith("join: ")] == [], "nothing of Spark's"
    written = pq.read_table(tmp_path / "out.parquet", columns=["row", "row_right"])
    left, right = (written[name].to_numpy() for name in ("row", "row_right"))
    place = np.empty(rows, np.int64)
    place[order] = np.arange(rows)
    assert np.array_equal(np.bincount(left, minlength=rows), behind - first)
    assert np.all((place[right] >= first[left]) & (place[right] < behind[left]))
    assert len(np.unique(left * rows + right)) == results, "no pair comes twice"


def damaged(path):
    """Overwrite what lies between the magic bytes and the footer."""
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 60 + data[64:])


@pytest.mark.parametrize(
    ("harm", "words", "action"),
    half(
        [
            (damaged, ["can not read class", "PageHeader", "mend the file"]),
            (lambda path: path.write_bytes(b"text"), ["is not a Parquet file", "mend the file"]),
            (Path.unlink, ["it is gone since the DataFrame was made"]),
        ],
        ["count", "toArrow", "ranges"],
        of=3,
    ),
)
def test_a_file_that_spark_cannot_read_is_named_with_the_deepest_cause(
    spark, tmp_path, harm, words, action
):
    path = tmp_path / "a folder" / "rows.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"t": list(range(99))}), path)
    rows = spark.read.parquet(str(path))
    asked = {"time": "t", "within": 5, "device": "software:", "partition_by": "range"}
    joined = stream_join(rows, rows, partitions=1, **asked)
    ranges = stream_join(rows, rows, partitions=2, **asked)
    harm(path)
    # Ranges of time are cut by what the file holds.
    actions = {"count": joined.count, "toArrow": joined.toArrow, "ranges": ranges.count}
    with pytest.raises((Py4JError, PySparkException)) as caught:
        actions[action]()
    error = task_error(caught.value)
    assert isinstance(error, FailureError)
    message = str(error)
    assert message.startswith(f"Spark could not read file '{path}': ")
    assert [word for word in words if word not in message] == []
    assert len(message.splitlines()) == 1


def test_a_failure_of_spark_in_a_command_is_the_sentence(spark, files, capsys, monkeypatch):
    """Whatever part of a command met it."""

    def failing(*arguments, **options):
        spark.sql("select raise_error('the disk is wet')").collect()

    monkeypatch.setattr("spark_offload.cli.join.plan_query", failing)
    assert main(["join", *files, *FLAGS]) == 1
    message = capsys.readouterr().err
    assert message == (
        "python -m spark_offload join: Spark failed: [USER_RAISED_EXCEPTION] the disk is wet.\n"
    )


def test_reading_and_shuffling_are_seen_to_move(spark, files, capsys, monkeypatch):
    """Spark's own stages are told too, long before the first row is joined."""
    monkeypatch.setattr(command, "PERIOD", 0.02)
    read = Source.read

    def slowly(batches):
        for batch in batches:
            time.sleep(0.5)
            yield batch

    def slow_read(source, session, options):
        time.sleep(0.2)
        frame = read(source, session, options)
        return frame.repartition(3).mapInArrow(slowly, frame.schema)

    monkeypatch.setattr(Source, "read", slow_read)
    assert main(["join", *files, *FLAGS]) == 0
    *lines, last = capsys.readouterr().err.splitlines()
    told = "\n".join(lines)
    assert f"join: reading {files[1]}, " in told
    assert f"join: reading {files[3]}, " in told
    tasks = set(re.findall(r"joining in Spark, .*?stage \d+: (\d+) of \d+ tasks", told))
    assert len(tasks) > 1, told
    assert last.startswith("3 + 3 rows, 4 results, ")


@pytest.mark.long
@pytest.mark.parametrize("place", ["start", "task"])
def test_an_interrupt_is_one_line_and_nothing_of_spark_stays(files, tmp_path, place):
    """SIGINT to the process group, as Ctrl-C sends it: as Java starts, and in a task."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "slow_device.py").write_text(
        "import time\n"
        "from host.devices.software import SOFTWARE_MANIFEST, SoftwareDevice\n"
        "class Slow(SoftwareDevice):\n"
        "    def exchange(self, *words, **options):\n"
        f"        open({str(tmp_path / 'task')!r}, 'w').close()\n"
        "        time.sleep(600)\n"
        "def open_device(place):\n"
        "    return Slow(SOFTWARE_MANIFEST)\n"
    )
    java = shutil.which("java")
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "java"
    wrapper.write_text(f'#!/bin/sh\n: > {tmp_path / "start"}\nexec {java} "$@"\n')
    wrapper.chmod(0o755)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "spark_offload",
            "join",
            *files,
            *FLAGS[:-1],
            "package.slow_device:",
        ],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        },
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A job in the background ignores the signal, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 200
        while not (tmp_path / place).exists():
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, shown = process.communicate(timeout=100)
        lines = [line for line in shown.splitlines() if not line.startswith("join: ")]
        assert lines == ["python -m spark_offload join: interrupted; nothing was written."]
        assert process.returncode == 130
        assert not (tmp_path / "out.parquet").exists()
        while living(process.pid):
            assert time.monotonic() < deadline, living(process.pid)
            time.sleep(0.2)
    finally:
        if living(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def living(session):
    """Return the commands of a session's processes that have not ended."""
    done = subprocess.run(
        ["ps", "-o", "stat=,args=", "--sid", str(session)],
        capture_output=True,
        text=True,
        check=False,
    )
    return [line[:100] for line in done.stdout.splitlines() if not line.startswith("Z")]


def test_an_unknown_command_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["jion"])
    assert caught.value.code == 2
    assert "jion" in capsys.readouterr().err
