# SPDX-License-Identifier: Apache-2.0
"""Set-up shows one line of progress, keeps all that pip prints, and shows its end on failure."""

import io
import sys

from tools.locked_install import TAIL, Progress, follow, locked_packages, main, plain

LOCK = """\
# made by a program
some-package==1.0 \\
    --hash=sha256:00
Other_Package==2.1 ; sys_platform == 'win32' \\
    --hash=sha256:01
    # via some-package
third[extra]==3 \\
    --hash=sha256:02
"""

SAID = """\
Processing /files/of-wheels/some_package-1.0-py3-none-any.whl (from -r requirements.lock (line 2))
  Downloading some_package-1.0-py3-none-any.whl (400 MB)
Ignoring other-package: markers "sys_platform == 'win32'" don't match your environment
Requirement already satisfied: third==3 in ./lib (from -r requirements.lock (line 7))
Requirement already satisfied: third==3 in ./lib (from some-package)
Installing collected packages: some-package
Successfully installed some-package-1.0
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(tmp_path, stream, said, code=0):
    log = tmp_path / "build" / "setup.log"
    program = f"import sys; print({said!r}, end=''); sys.exit({code})"
    progress = Progress(locked_packages(LOCK))
    return follow([sys.executable, "-c", program], progress, log, stream), log.read_text()


def test_every_locked_package_of_the_repository_is_counted(root):
    text = (root / "requirements.lock").read_text()
    first = [line for line in text.splitlines() if line[:1].isalnum()]
    assert locked_packages(text) == {plain(line.partition("==")[0]) for line in first}
    assert len(first) > 50


def test_names_are_compared_as_pip_does():
    assert locked_packages(LOCK) == {"some-package", "other-package", "third"}


def test_each_package_counts_once_in_one_line(tmp_path):
    terminal = Terminal()
    assert run(tmp_path, terminal, SAID) == (0, SAID)
    shown = terminal.getvalue()
    assert "\n" not in shown
    stages = [stage for stage in shown.split("\r\x1b[K") if stage]
    assert stages == [
        "1 of 3 packages: some-package",
        "2 of 3 packages: other-package",
        "3 of 3 packages: third",
        "All 3 packages are here; unpacking them",
    ]


def test_where_nobody_looks_nothing_is_shown(tmp_path):
    stream = io.StringIO()
    assert run(tmp_path, stream, SAID) == (0, SAID)
    assert stream.getvalue() == ""


def test_a_failure_shows_the_end_of_the_log(tmp_path):
    said = "".join(f"line {n}\n" for n in range(TAIL + 5)) + "ERROR: no such package\n"
    stream = io.StringIO()
    assert run(tmp_path, stream, said, code=3) == (3, said)
    lines = stream.getvalue().splitlines()
    assert len(lines) == TAIL + 1
    assert lines[0] == "line 6"
    assert lines[-2] == "ERROR: no such package"
    assert lines[-1].startswith("pip failed with exit code 3; all that it said is in ")


def test_pip_itself_is_run_with_the_lock(tmp_path, capfd):
    lock = tmp_path / "empty.lock"
    lock.write_text("this is no requirement\n")
    assert main([str(lock), str(tmp_path / "log")]) == 1
    assert "ERROR: Invalid requirement" in capfd.readouterr().err
    lock.write_text("# nothing\n")
    assert main([str(lock), str(tmp_path / "log")]) == 0
    assert capfd.readouterr().out.startswith("0 locked packages are installed")
