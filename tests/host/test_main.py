# SPDX-License-Identifier: Apache-2.0
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, Ordering, TimeWindow
from host.__main__ import main, parser
from host.cli import command
from host.cli.arguments import query_from
from host.devices import bundles as host_bundles
from host.devices.locks import claim_device
from host.errors import UsageError
from host.files.reading import Dataset, read_table
from host.files.writing import write_table
from host.query.quantities import parse_duration
from host.query.queries import Query
from host.reference.types import JoinType
from host.session.join import Join
from tests.host.tables import bundle, naive_join, naive_results


@pytest.fixture(autouse=True)
def _no_lines_of_progress(monkeypatch):
    """A busy machine may take so long that there would be one."""
    monkeypatch.setattr(command, "PERIOD", 3600.0)


@pytest.fixture
def files(tmp_path):
    """Two small tables, in files."""
    rng = np.random.default_rng(8)
    tables = {}
    for name in ("left", "right"):
        seconds = pa.array(rng.integers(0, 5000, 150)).cast(pa.timestamp("s"))
        tables[name] = pa.table({"at": seconds, "k": rng.integers(0, 4, 150), "n": np.arange(150)})
        write_table(tables[name].to_batches(), tables[name].schema, tmp_path / f"{name}.parquet")
    return tmp_path, tables["left"], tables["right"]


def arguments(folder, *more, output="out.parquet", device="software:", order="at"):
    return [
        "join", "--left", str(folder / "left.parquet"), "--right", str(folder / "right.parquet"),
        "--output", str(folder / output), "--device", device, "--time", order, *more,
    ]  # fmt: skip


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out.json"])
def test_join_writes_the_answer_in_order(files, capsys, output):
    folder, left, right = files
    more = ("--on", "k", "--within", "10min", "--verify", "--explain")
    assert main(arguments(folder, *more, output=output)) == 0
    query = Query(on="k", time="at", within="10min")
    result = read_table(folder / output)
    pairs = zip(result["n"].to_pylist(), result["n_right"].to_pylist(), strict=True)
    assert list(pairs) == naive_join(left, right, query)
    shown = capsys.readouterr()
    assert f"all {result.num_rows} results agree" in shown.err
    assert "left.k = right.k" in shown.out
    assert "left -> JoinStream: up to" in shown.out


@pytest.mark.parametrize("more", [["--verify"], ["--sorted"]])
def test_a_join_of_any_type_is_written(files, capsys, more):
    folder, left, right = files
    tables = []
    for name, table in (("left", left), ("right", right)):
        tables.append(table.sort_by("at"))
        write_table(tables[-1].to_batches(), left.schema, folder / f"{name}.parquet")
    query = {"on": "k", "time": "at", "within": "1min"}
    for how in ("full_outer", "anti"):
        named = ["--on", "k", "--within", "1min", "--explain", "--how", how, *more]
        assert main(arguments(folder, *named)) == 0
        expected = naive_results(*tables, Query(**query, how=how))
        result = read_table(folder / "out.parquet")
        for column, table, rows in zip(
            ["n", "n_right"], tables, zip(*expected, strict=True), strict=True
        ):
            numbers = table["n"].to_pylist()
            if column in result.column_names:
                found = result[column].to_pylist()
                assert found == [None if row is None else numbers[row] for row in rows]
        shown = capsys.readouterr()
        assert f"{JoinType.of(how)} join: left.k = right.k" in shown.out
        assert more != ["--verify"] or f"all {len(expected)} results agree" in shown.err


def test_a_device_that_processes_share_is_joined_on_in_turns(files, capsys, monkeypatch):
    folder, *_ = files
    monkeypatch.setenv("SPLITJOIN_LOCK_FOLDER", str(folder / "locks"))
    (folder / "cards").mkdir()
    (folder / "cards" / "link.py").write_text(
        "from host import open_device as _open\n"
        "def open_device(place):\n    return _open('software:')\n"
    )
    monkeypatch.syspath_prepend(folder)
    more = ("--on", "k", "--within", "10min")
    join = arguments(folder, *more, "--device-wait", "100ms", device="cards.link:3")
    with claim_device(["cards.link:3"], holder="another join", seconds=0):
        assert main(join) == 1
        assert "cards.link" not in sys.modules
        held = rf"held by process {os.getpid()} \(another join\) since [\d:]+"
        told = capsys.readouterr().err
        assert re.search(rf"device: waiting up to 0\.1 s for 'cards.link:3'; .* {held}", told)
        assert re.search(rf"within 0\.1 s; .* {held}; wait longer \(--device-wait\), or", told)
        assert main(arguments(folder, *more)) == 0  # software: is made for this process alone
    capsys.readouterr()
    assert main(join) == 0
    assert "on cards.link:3" in capsys.readouterr().err
    assert main([*join[:-1], "soon"]) == 2
    assert "Option --device-wait: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ordering", "meaning"),
    [
        ("none", "in any order"),
        ("inner:2", "then by the earlier one"),
        ("relaxed:3", "3 or more before it"),
        ("adaptive:8:rate=0.5", "holding 0.5 tuples per cycle"),
    ],
)
def test_the_ordering_is_explained_and_the_answer_is_the_same_set(files, capsys, ordering, meaning):
    folder, left, right = files
    more = ("--on", "k", "--within", "10min", "--verify", "--explain", "--ordering", ordering)
    assert main(arguments(folder, *more)) == 0
    query = Query(on="k", time="at", within="10min")
    result = read_table(folder / "out.parquet")
    pairs = list(zip(result["n"].to_pylist(), result["n_right"].to_pylist(), strict=True))
    expected = naive_join(left, right, query)
    assert pairs == expected if ordering.startswith("inner") else sorted(pairs) == sorted(expected)
    shown = capsys.readouterr()
    assert meaning in next(line for line in shown.out.splitlines() if line.startswith("order "))
    assert ("precision: " in shown.err) == ordering.startswith("adaptive")


def test_files_are_joined_in_the_order_of_time_however_they_lie(files, capsys):
    folder, left, right = files
    more = ("--on", "k", "--within", "10min", "--explain")
    assert main(arguments(folder, *more, output="whole.parquet")) == 0
    shown = capsys.readouterr()
    assert shown.out.count(": not sorted, so the rows are sorted first") == 2
    for name, table in (("left", left), ("right", right)):
        ordered = table.sort_by("at")
        write_table(ordered.to_batches(), ordered.schema, folder / f"{name}.parquet")
    for promise, said in (([], ": found to be sorted"), (["--sorted"], ": declared to be sorted")):
        assert main(arguments(folder, *more, *promise)) == 0
        shown = capsys.readouterr()
        assert shown.out.count(said) == 2
        assert shown.err.startswith("150 + 150 rows, ")
        assert " of memory at most" in shown.err
        assert read_table(folder / "out.parquet").equals(read_table(folder / "whole.parquet"))


def test_the_options_make_the_query():
    base = ["join", "--left", "l.csv", "--right", "r.csv", "--output", "o.csv", "--time", "a:b"]
    more = ["--on", "x:y", "--on", "z", "--band", "p:q:-2:", "--band", "u:v:-30s:1h",
            "--within", "2h", "--sorted", "--suffix", "_2"]  # fmt: skip
    assert query_from(parser().parse_args(base + more)) == Query(
        on=[("x", "y"), "z"],
        band=[("p", "q", -2, None), ("u", "v", parse_duration("-30s"), parse_duration("1h"))],
        time=("a", "b"),
        within="2h",
        sorted=True,
        suffix="_2",
    )
    assert query_from(parser().parse_args([*base, "--within", "2.5"])).window == TimeWindow(2)
    of_seven = query_from(parser().parse_args([*base, "--rows", "7", "--ordering", "relaxed:3"]))
    assert (of_seven.window, of_seven.ordering) == (CountWindow(7), Ordering.relaxed(3))


@pytest.mark.parametrize(
    "more",
    [
        ["--rows", "0"], ["--rows", "x"], ["--within", "-1"], ["--within=-5s"],
        ["--within", "soon"], ["--rows", "1", "--on", "a:b:c"], ["--rows", "1", "--on", ""],
        ["--rows", "1", "--band", "a:b:1"], ["--rows", "1", "--band", ":b:1:2"],
        ["--rows", "1", "--band", "a:b:x:2"], ["--rows", "1", "--how", "cross"],
        ["--rows", "1", "--ordering", "adaptive:4:rate=none"],
    ],
)  # fmt: skip
def test_options_that_cannot_be_read_are_errors(more):
    base = ["join", "--left", "l.csv", "--right", "r.csv", "--output", "o.csv", "--time", "a"]
    with pytest.raises(UsageError):
        query_from(parser().parse_args(base + more))


@pytest.mark.parametrize(
    ("more", "options", "code", "message"),
    [
        (["--rows", "5"], {"output": "out.xlsx"}, 2, "must end in"),
        (["--rows", "5"], {"output": "missing/out.csv"}, 2, "does not exist"),
        (["--rows", "5"], {"order": "missing"}, 2, "no column 'missing'"),
        (["--rows", "5"], {"device": "fpga:"}, 2, "unknown scheme"),
        (["--rows", "5"], {"device": "sim:/nowhere"}, 2, "no readable manifest"),
        (["--rows", "5", "--on", "k:zz"], {}, 2, "no column 'zz'"),
        (["--within", "5"], {}, 2, "write a duration"),
        (["--rows", "5", "--sorted"], {}, 2, "backwards"),
    ],
)
def test_bad_input_is_a_message_and_a_code_and_no_file(files, capsys, more, options, code, message):
    folder, _, _ = files
    assert main(arguments(folder, *more, **options)) == code
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert sorted(os.listdir(folder)) == ["left.parquet", "right.parquet"]


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (b"at,k\n", ["--rows", "5"], ["'left.at' has no type", "no row has a value", "Parquet"]),
        (b"at,k\n1,a\n,b\n", ["--rows", "5"], ["'left.at'", "row 1", "at=null, k='b'"]),
        (b"at,k\n1,a\n", ["--rows", "5", "--on", "K"], ["'K'", "write 'k'"]),
        (b"at,k\n1,a\n", ["--rows", "5", "--band", "at:at:x:2"],
         ["--band 'at:at:x:2'", "LO 'x' is not a duration", "plain number"]),
        (b"at,k\n1,a\n", ["--within", "soon"], ["--within 'soon' is not a duration"]),
        (b"at,k\n2024-01-01,a\n", ["--within", "3h"],
         ["window 3h", "not a whole number of days", "date32", "1d", "timestamp"]),
        (b"at,k\n2024-01-01,a\n", ["--rows", "5", "--band", "at:at:-30min:1d"],
         ["bound -30min", "not a whole number of days"]),
        (b"at,k\n2024-01-01,a\n", ["--within", "3"], ["write a duration, like 1d"]),
        ("at,k\n1,Z\u00fcrich\n".encode("latin-1"), ["--rows", "5", "--on", "k"],
         ["is not UTF-8: line 2", r"b'1,Z\xfcrich'", "`iconv -f LATIN1"]),
    ],
)  # fmt: skip
def test_a_message_names_the_value_its_place_and_the_remedy(tmp_path, capsys, text, more, words):
    for name in ("left", "right"):
        (tmp_path / f"{name}.csv").write_bytes(text)
    command = [word.replace("t.parquet", "t.csv") for word in arguments(tmp_path, *more)]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert [word for word in words if word not in message] == []
    assert len(message.splitlines()) == 1


def test_whole_days_are_a_window_over_dates(tmp_path, capsys):
    for name in ("left", "right"):
        (tmp_path / f"{name}.csv").write_text("at,k\n2024-01-01,a\n2024-01-02,b\n")
    command = [word.replace("t.parquet", "t.csv") for word in arguments(tmp_path, "--within=24h")]
    assert main(command) == 0
    assert "4 results" in capsys.readouterr().err


def test_a_remedy_quotes_a_path_that_has_spaces(tmp_path, capsys):
    place = bundle(tmp_path / "my bundle")
    command = arguments(tmp_path, "--rows", "5", device=f"sim:{place}")
    assert main(command) == 2
    assert f"`python -m sim build '{place}'`" in capsys.readouterr().err
    assert main(arguments(tmp_path, "--rows", "5", device=f"sim:{tmp_path}/no where")) == 2
    assert f"`python -m sim build --preset demo --output '{tmp_path}/no where'`" in (
        capsys.readouterr().err
    )


def test_an_interrupt_is_one_line_and_leaves_no_file(files, root):
    """SIGINT to the process group, as Ctrl-C sends it, once the device works."""
    folder, _, _ = files
    (folder / "package").mkdir()
    (folder / "package" / "slow_device.py").write_text(
        "import sys, time\n"
        "from host.devices.software import SOFTWARE_MANIFEST, SoftwareDevice\n"
        "class Slow(SoftwareDevice):\n"
        "    def exchange(self, *words, **options):\n"
        "        print('working', flush=True)\n"
        "        time.sleep(1)\n"
        "        return super().exchange(*words, **options)\n"
        "def open_device(place):\n"
        "    return Slow(SOFTWARE_MANIFEST)\n"
    )
    command = arguments(folder, "--rows", "5", device="package.slow_device:")
    process = subprocess.Popen(
        [sys.executable, "-m", "host", *command],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{folder}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A job in the background ignores the signal, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == "working\n"
        os.killpg(process.pid, signal.SIGINT)
        _, shown = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert shown == "python -m host join: interrupted; nothing was written.\n"
    assert not (folder / "out.parquet").exists()


def test_a_slow_input_and_a_slow_join_are_seen_to_move(files, capsys, monkeypatch):
    folder, _, _ = files
    monkeypatch.setattr(command, "PERIOD", 0.05)

    def slow_read(path, options):
        time.sleep(0.3)
        return Dataset(path, options)

    def slow_batches(self):
        for number, batch in enumerate(original(self)):
            if not number:
                time.sleep(0.3)
            yield batch

    original = Join.batches
    monkeypatch.setattr("host.cli.arguments.Dataset", slow_read)
    monkeypatch.setattr(Join, "batches", slow_batches)
    assert main(arguments(folder, "--within", "10min", "--on", "k")) == 0
    *lines, last = capsys.readouterr().err.splitlines()
    stages = list(dict.fromkeys(line.split(",")[0] for line in lines))
    assert stages[0] == f"join: reading {folder / 'left.parquet'}"
    assert f"join: reading {folder / 'right.parquet'}" in stages
    assert stages[-1] == "join: joining"
    assert "join: joining, 300 of 300 rows, " in lines[-1]
    assert last.startswith("150 + 150 rows, ")


#: Options of joins that a small device cannot hold, and why it cannot, and the exit code.
BEYOND = {
    "rows": (["--rows", "151"], "151 tuples"),
    "window": (["--within", "2h"], "outgrew the capacity of 120"),
    "sorted": (["--within", "2h", "--sorted"], "outgrew the capacity of 120"),
    "times": (["--within", "3s", "--on", "k"], "bits of timestamp"),
    "sorted times": (["--within", "3s", "--on", "k", "--sorted"], "bits of timestamp"),
}


@pytest.fixture
def small(files):
    """Return what makes the options of a join of sorted files on a device that holds little."""
    folder, *tables = files
    for name, table in zip(("left", "right"), tables, strict=True):
        ordered = table.sort_by("at")
        write_table(ordered.to_batches(), ordered.schema, folder / f"{name}.parquet")

    def options(case, *more):
        bits = 5 if "times" in case else 24
        place = bundle(folder / f"small{bits}", timestamp_bits=bits, sub_window=40)
        return arguments(folder, *BEYOND[case][0], *more, device=f"software:{place}")

    return options


@pytest.mark.parametrize("case", BEYOND)
def test_strict_makes_it_an_error_that_a_device_cannot_hold_the_rows(files, small, capsys, case):
    folder, _, _ = files
    _, said = BEYOND[case]
    assert main(small(case, "--strict")) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "python -m sim build" in shown
    assert not (folder / "out.parquet").exists()


@pytest.mark.parametrize("case", BEYOND)
def test_software_joins_what_a_device_cannot_hold_and_says_why(files, small, capsys, case):
    folder, _, _ = files
    given, said = BEYOND[case]
    assert main(arguments(folder, *given)) == 0
    expected = read_table(folder / "out.parquet")
    assert expected.num_rows
    (folder / "out.parquet").unlink()
    capsys.readouterr()
    assert main(small(case)) == 0
    shown = capsys.readouterr().err
    assert shown.count("joined in software: ") == 1
    assert said in shown
    assert " results, " in shown
    assert "on software:, written to" in shown
    assert read_table(folder / "out.parquet") == expected


def test_a_bundle_that_was_changed_is_refused(files, capsys):
    folder, _, _ = files
    place = bundle(folder / "changed")
    text = (place / "manifest.json").read_text()
    (place / "manifest.json").write_text(text.replace('"cores": 3', '"cores": 5', 1))
    assert main(arguments(folder, "--rows", "5", device=f"software:{place}")) == 2
    assert "was changed after it was generated" in capsys.readouterr().err


@pytest.fixture
def no_builder(files, monkeypatch):
    """As on a machine without the builder's packages, a compiler or a bundle."""
    monkeypatch.setattr(host_bundles, "MAKERS", ("no_such_package",))
    monkeypatch.setenv("SPLITJOIN_CACHE", str(files[0] / "none"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("SPLITJOIN_DEVICE", raising=False)


def test_without_a_device_the_software_engine_joins(files, no_builder, capsys):
    folder, _, _ = files
    words = arguments(folder, "--rows", "5")
    assert main(words) == 0
    expected = read_table(folder / "out.parquet")
    capsys.readouterr()
    at = words.index("--device")
    assert main([*words[:at], *words[at + 2 :], "--explain"]) == 0
    shown = capsys.readouterr()
    assert "on software:, written to" in shown.err
    assert "chosen   software:: no accelerator is named" in shown.out
    assert read_table(folder / "out.parquet") == expected


@pytest.mark.parametrize("words", [["--device", "sim:"], ["--elastic"], ["--pace", "3"]])
def test_the_simulated_accelerator_is_built_where_it_is_asked_for(files, no_builder, capsys, words):
    folder, _, _ = files
    given = arguments(folder, "--rows", "5")
    at = given.index("--device")
    assert main([*given[:at], *given[at + 2 :], *words]) == 1
    assert "bundle builder" in capsys.readouterr().err


def test_devices_lists_kinds_and_bundles(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    assert main(["devices"]) == 0
    assert f"No bundles in {tmp_path / 'bundles'}" in capsys.readouterr().out
    mine = bundle(tmp_path / "bundles" / "mine", timestamp_bits=9)
    assert main(["devices"]) == 0
    shown = capsys.readouterr().out
    assert f"sim:{mine} (no simulator library yet)" in shown
    assert "3 cores, 150 tuples a side, keys f0 int32, timestamps of 9 bits" in shown
    (mine / "splitjoin.so").write_bytes(bytes(999))
    assert main(["devices"]) == 0
    assert "simulator library that is damaged" in capsys.readouterr().out


def test_the_command_line_is_a_program_with_exit_codes(files, root):
    folder, _, _ = files

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "host", *words], cwd=root, capture_output=True, text=True
        )

    assert run("join").returncode == 2
    assert run("--help").returncode == 0
    bad = run(*arguments(folder, "--rows", "5", order="nothing"))
    assert bad.returncode == 2
    assert bad.stderr.startswith("python -m host join: There is no column 'nothing'")


def test_files_are_joined_on_a_machine_without_compilers(files):
    """No g++, no perl, nothing else on the path is needed where no device is asked for."""
    folder, left, right = files
    empty = folder / "bin"
    empty.mkdir()
    words = arguments(folder, "--on", "k", "--within", "10min")
    at = words.index("--device")
    ended = subprocess.run(
        [sys.executable, "-m", "host", *words[:at], *words[at + 2 :]],
        env={"PATH": str(empty), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "on software:" in ended.stderr
    expected = naive_join(left, right, Query(on="k", time="at", within="10min"))
    assert read_table(folder / "out.parquet").num_rows == len(expected)
