# SPDX-License-Identifier: Apache-2.0
"""The commands of the guides run as they stand, as far as tools and boards are to be had."""

from contextlib import contextmanager
import re
import signal
import subprocess

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]

#: Beginnings of commands that do not run here.
NOT_HERE = ("make setup", "openFPGALoader")
#: Devices that are to be had at their pins only.
ELSEWHERE = r"serial:/dev/ttyUSB0\?[^'\"&]*(?:&bundle=[^'\"&]*)?|axi:/dev/xdma0\?[^'\"]*"


def blocks(root, guide, kind):
    """Return the blocks of a guide that are marked so."""
    page = (root / "docs" / f"{guide}.md").read_text("utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for marked, text in found if marked == kind]


def commands(root, guide):
    """Return the commands of a guide that run here, each with the lines that continue it."""
    lines = "".join(blocks(root, guide, "console"))
    found = [one.strip() for one in re.split(r"^\$ ", lines, flags=re.MULTILINE) if one]
    return [one for one in found if not one.startswith(NOT_HERE)]


@pytest.fixture
def kit(root, tmp_path):
    """A folder in which the kit stands, with nothing built yet."""
    for entry in root.iterdir():
        if entry.name not in ("build", ".git"):
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


def run(kit, script):
    """Run commands of a shell, which must succeed; return what they print."""
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=kit,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@contextmanager
def served(kit, command):
    """Run a command that serves a device until Ctrl-C; give the URI that it prints."""
    words = ["bash", "-c", f"exec {command}"]
    with subprocess.Popen(words, cwd=kit, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


def test_a_package_is_simulated_by_its_own_bench(root, kit):
    said = run(kit, "\n".join(commands(root, "guide-axi-design")))
    assert re.search(r"PASS: \d+", said)


def test_a_card_answers_and_a_kernel_is_written(root, kit):
    generate, serve, *others = commands(root, "guide-dma")
    run(kit, generate)
    with served(kit, serve) as uri:
        for command in others:
            said = run(kit, re.sub(ELSEWHERE, uri, command))
            assert "selftest" not in command or said.count("ok") >= 3
    assert (kit / "build" / "kernel" / "splitjoin_kernel.xml").exists()


def test_two_files_are_joined_on_a_board(root, kit):
    boards, serve, *others = commands(root, "guide-board")
    assert "ulx3s-12f" in run(kit, boards)
    left, right, wanted = blocks(root, "guide-board", "")
    (kit / "trades.csv").write_text(left)
    (kit / "quotes.csv").write_text(right)
    with served(kit, serve) as uri:
        for command in others:
            run(kit, re.sub(ELSEWHERE, uri, command))
    assert (kit / "pairs.csv").read_text() == wanted
    assert (kit / "build/bitstreams/ulx3s-12f-board-scan/ulx3s-12f.bit").stat().st_size
