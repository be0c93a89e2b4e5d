# SPDX-License-Identifier: Apache-2.0
"""No command overwrites its input, and no output is ever seen half written."""

from argparse import Namespace
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from host.__main__ import main
from host.errors import FailureError, UsageError
from host.files.atomic import atomic_file, workplace
from host.files.writing import atomic_output, inputs_of, require_outputs, write_table

TABLE = pa.table({"t": range(3000), "n": range(3000)})

#: Writes some of a file or folder, says so, and waits to be killed.
HALF = """
import sys, time
from host.files.atomic import atomic_file, workplace
from pathlib import Path
place = Path(sys.argv[2])
with atomic_file(place) if sys.argv[1] == "file" else workplace(place, "thing") as work:
    (work if sys.argv[1] == "file" else work / "half").write_text("half")
    print("now", flush=True)
    time.sleep(60)
"""


def write(path):
    path.parent.mkdir(exist_ok=True)
    write_table(TABLE.to_batches(), TABLE.schema, path)
    return path


def half_written(kind, place, root):
    """Start a process that is in the middle of writing ``place``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HALF, kind, str(place)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "now\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def by_name(folder):
    return folder / "in.parquet"


def by_detour(folder):
    (folder / "sub").mkdir()
    return folder / "sub" / ".." / "in.parquet"


def by_symbolic_link(folder):
    (folder / "link.parquet").symlink_to("in.parquet")
    return folder / "link.parquet"


def by_link_to_the_folder(folder):
    (folder / "there").symlink_to(folder, target_is_directory=True)
    return folder / "there" / "in.parquet"


def by_hard_link(folder):
    os.link(folder / "in.parquet", folder / "other.parquet")
    return folder / "other.parquet"


def by_the_folder(folder):
    (folder / "all.parquet").mkdir()
    (folder / "in.parquet").rename(folder / "all.parquet" / "in.parquet")
    (folder / "in.parquet").symlink_to(folder / "all.parquet" / "in.parquet")
    return folder / "all.parquet"


WAYS = [
    by_name, by_detour, by_symbolic_link, by_link_to_the_folder, by_hard_link, by_the_folder,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("option", ["--left", "--right"])
def test_an_output_that_is_an_input_is_refused_and_the_input_stays(tmp_path, capsys, way, option):
    write(tmp_path / "in.parquet")
    other = write(tmp_path / "else" / "other.parquet")
    before = (tmp_path / "in.parquet").read_bytes()
    inputs = {"--left": other, "--right": other, option: tmp_path / "in.parquet"}
    output = way(tmp_path)
    command = ["join", "--output", str(output), "--time", "t", "--rows", "5"]
    for name, place in inputs.items():
        command += [name, str(place)]
    assert main([*command, "--device", "software:"]) == 2
    message = capsys.readouterr().err
    assert f"--output {str(output)!r}" in message
    assert f"{option} {str(tmp_path / 'in.parquet')!r}" in message
    assert (tmp_path / "in.parquet").read_bytes() == before


def test_no_name_is_an_address_by_which_an_input_is_read_unseen(tmp_path, capsys):
    before = write(tmp_path / "in.parquet").read_bytes()
    for sorting in ([], ["--sorted"]):
        command = ["join", "--left", f"file://{tmp_path}/in.parquet", "--time", "t", "--rows", "5"]
        command += ["--right", str(tmp_path / "in.parquet"), "--output"]
        output = tmp_path / "out.parquet"
        assert main([*command, str(output), "--device", "software:", *sorting]) == 2
        assert "in.parquet' cannot be read: No such file" in capsys.readouterr().err
        assert main([*command, f"file://{tmp_path}/in.parquet", "--device", "software:"]) == 2
    assert (tmp_path / "in.parquet").read_bytes() == before


@pytest.mark.parametrize("place", ["part/out.parquet", "part/new/out.parquet", "mine.parquet"])
def test_a_folder_that_is_read_is_protected_with_all_that_is_in_it(tmp_path, place):
    parts = tmp_path / "parts.parquet"
    write(parts / "0.parquet")
    (parts / "new").mkdir()
    (tmp_path / "part").symlink_to(parts, target_is_directory=True)
    mine = write(tmp_path / "mine.parquet")
    (parts / "linked.parquet").symlink_to(mine)
    (parts / "circle").symlink_to(parts, target_is_directory=True)
    with pytest.raises(UsageError, match=r"--output .* --left .* which it would overwrite"):
        require_outputs({"--output": tmp_path / place}, {"--left": parts})
    require_outputs({"--output": tmp_path / "fresh.parquet"}, {"--left": parts})


def test_the_bundle_of_the_device_is_an_input(tmp_path):
    options = Namespace(left="l.csv", right="r.csv", device=f"software:{tmp_path}")
    with pytest.raises(UsageError, match="lies in --device"):
        require_outputs({"--output": tmp_path / "manifest.json"}, inputs_of(options))
    options.device = None
    assert set(inputs_of(options)) == {"--left", "--right"}


def test_two_outputs_are_two_files(tmp_path):
    with pytest.raises(UsageError, match="--output and --report are the same file"):
        require_outputs({"--output": tmp_path / "A.json", "--report": tmp_path / "a.json"})
    require_outputs({"--output": tmp_path / "a.json", "--report": tmp_path / "b.json"})


def test_an_output_that_cannot_be_is_noticed_first(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="does not exist"):
        require_outputs({"--output": tmp_path / "missing" / "out.csv"})
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        require_outputs({"--output": tmp_path / "folder.csv"})
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UsageError, match="no regular file"):
        require_outputs({"--output": tmp_path / "pipe.csv"})
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="files cannot be made in its folder"):
        require_outputs({"--output": tmp_path / "out.csv"})


@pytest.mark.parametrize("before", [None, "old"])
def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies_up(tmp_path, root, before):
    target = tmp_path / "out.csv"
    if before is not None:
        target.write_text(before)
    alive, killed = (half_written("file", target, root) for _ in range(2))
    kill(killed)
    assert len(list(tmp_path.glob(".out.csv.*"))) == 2
    mine = tmp_path / f".out.csv.{'0' * 15}.partial"
    mine.touch()
    with atomic_file(target) as place:
        assert set(tmp_path.glob(".out.csv.*")) > {place, mine}
        assert len(list(tmp_path.glob(".out.csv.*"))) == 3, "that of the killed process is gone"
        assert (target.read_text() if target.exists() else None) == before
        place.write_text("new")
    assert target.read_text() == "new"
    kill(alive)
    with pytest.raises(KeyboardInterrupt), atomic_file(target):
        raise KeyboardInterrupt
    assert target.read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", mine.name}


def test_the_work_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(tmp_path, root):
    alive, killed = (half_written("folder", tmp_path, root) for _ in range(2))
    kill(killed)
    (tmp_path / f".thing.{'0' * 16}.partial").mkdir()  # killed before it had made its lock
    with workplace(tmp_path, "other") as place:
        assert list(place.iterdir()) == []
        assert len(list(tmp_path.iterdir())) == 2
        kill(alive)
    with workplace(tmp_path, "third"):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_planted_link_leads_to_is_let_alone(tmp_path, kind):
    # It has the name of abandoned work, and leads to a folder that looks like that.
    (tmp_path / "home" / "work").mkdir(parents=True)
    for name in ("lock", "work/precious"):
        (tmp_path / "home" / name).write_text(name)
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / f".out.csv.{'0' * 16}.partial").symlink_to(tmp_path / "home")
    with atomic_file(shared / "out.csv") if kind == "file" else workplace(shared, "out.csv"):
        pass
    assert (tmp_path / "home" / "lock").read_text() == "lock"
    assert (tmp_path / "home" / "work" / "precious").read_text() == "work/precious"


def test_many_writers_of_one_file_do_not_take_each_other_for_dead(tmp_path, root):
    program = (
        "import sys\nfrom host.files.atomic import atomic_file\n"
        "for n in range(150):\n"
        "    with atomic_file(sys.argv[1]) as place: place.write_text(sys.argv[2] * 1000)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, tmp_path / "out", letter], cwd=root)
        for letter in "abc"
    ]
    while any(process.poll() is None for process in processes):
        text = (tmp_path / "out").read_text() if (tmp_path / "out").exists() else "a" * 1000
        assert len(text) == 1000
        assert len(set(text)) == 1
        time.sleep(0.005)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.csv").symlink_to("real/out.csv")
    with atomic_output(tmp_path / "link.csv") as place:
        place.write_text("x")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real" / "out.csv").read_text() == "x"


def test_a_name_of_any_length_can_be_written(tmp_path):
    path = tmp_path / ("ü" * 123 + ".csv")
    with atomic_output(path) as place:
        place.write_text("x")
    assert path.read_text() == "x"


def test_output_has_the_usual_permissions_and_the_umask_is_let_alone(tmp_path, monkeypatch):
    mask = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        for name, mode in (("table.csv", 0o666), ("program", 0o777)):
            with atomic_file(tmp_path / name, mode=mode) as place:
                place.write_text("x")
            assert (tmp_path / name).stat().st_mode & 0o777 == mode & ~0o027
    finally:
        monkeypatch.undo()
        os.umask(mask)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.json"])
def test_where_the_file_does_not_fit_the_old_one_stays(tmp_path, root, name):
    for side in ("left", "right"):
        write(tmp_path / f"{side}.parquet")
    (tmp_path / name).write_text("old")
    command = [
        sys.executable, "-m", "host", "join", "--left", str(tmp_path / "left.parquet"),
        "--right", str(tmp_path / "right.parquet"), "--output", str(tmp_path / name),
        "--time", "t", "--within", "9", "--device", "software:",
    ]  # fmt: skip
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *command],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stderr
    # Before it, there may be lines of progress.
    assert done.stderr.splitlines()[-1] == (
        f"python -m host join: Writing {str(tmp_path / name)!r} failed: File too large."
    )
    assert (tmp_path / name).read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"left.parquet", "right.parquet", name}


def test_a_full_disk_is_an_error_with_the_name_of_the_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailureError, match=r"Writing .*out.csv' failed: No space left on device"):
        write_table(TABLE.to_batches(), TABLE.schema, Path(tmp_path / "out.csv"))
    assert list(tmp_path.iterdir()) == []
