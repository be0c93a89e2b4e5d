# SPDX-License-Identifier: Apache-2.0
"""Install the packages of a lock file with pip, and show the progress in one line.

``python tools/locked_install.py requirements.lock build/setup.log`` keeps all that pip prints in
the log, and shows the end of it if pip fails. It runs before anything is installed, so it needs
only what comes with Python.
"""

from collections import deque
from pathlib import Path
import re
import subprocess
import sys
import time

__all__ = ["TAIL", "Progress", "follow", "locked_packages", "main"]

#: Lines of the log that are shown if pip fails.
TAIL = 20

#: What pip prints of each package of the lock, once it has come so far; "Processing" is said of the
#: file of a package in a folder.
MET = re.compile(
    r"(?:Collecting|Requirement already satisfied:|Ignoring) ([A-Za-z0-9._-]+)"
    r"|Processing \S*?/([A-Za-z0-9._]+)-\d[^/\s]*(?:\s|$)"
)
#: What pip prints when all packages are there.
UNPACKING = re.compile(r"Installing collected packages")


def locked_packages(lock):
    """Return the names of the packages in the text of a lock file."""
    return {
        plain(name)
        for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", lock, re.MULTILINE)
    }


def plain(name):
    """Return the name of a package in the one form that pip compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Progress:
    """How far pip has come with the packages of a lock.

    Parameters
    ----------
    packages : set of str
        Names from :func:`locked_packages`.
    """

    def __init__(self, packages):
        self.packages = packages
        self.met = set()
        self.stage = "Asking for packages"

    def read(self, line):
        """Take a line of pip; return whether the progress has changed."""
        before = self.stage
        if found := MET.match(line.strip()):
            name = plain(found[1] or found[2])
            self.met |= {name} & self.packages
            self.stage = f"{len(self.met)} of {len(self.packages)} packages: {name}"
        elif UNPACKING.match(line.strip()):
            self.stage = f"All {len(self.packages)} packages are here; unpacking them"
        return self.stage != before


def follow(command, progress, log, stream):
    """Run pip with its output in a log; return its exit code.

    Parameters
    ----------
    command : sequence of str
        pip and its arguments.
    progress : Progress
        What reads the lines.
    log : Path
        File that gets all lines; its folder is made if necessary.
    stream : text stream
        Where the one line of progress is shown, if it is a terminal, and the end of the log, if pip
        fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    shown, last = stream.isatty(), deque(maxlen=TAIL)
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        ) as pip,
    ):  # fmt: skip
        for line in pip.stdout:
            kept.write(line)
            kept.flush()
            last.append(line)
            if progress.read(line) and shown:
                stream.write(f"\r\x1b[K{progress.stage[:78]}")
                stream.flush()
    if shown:
        stream.write("\r\x1b[K")
    if pip.returncode:
        stream.write("".join(last))
        stream.write(f"pip failed with exit code {pip.returncode}; all that it said is in {log}.\n")
    stream.flush()
    return pip.returncode


def main(arguments=None):
    """Install the packages of a lock; return the exit code, which is that of pip."""
    lock, log = map(Path, sys.argv[1:] if arguments is None else arguments)
    progress = Progress(locked_packages(lock.read_text(encoding="utf-8")))
    started = time.monotonic()
    command = [
        sys.executable, "-u", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
        "--disable-pip-version-check", "--require-hashes", "-r", str(lock),
    ]  # fmt: skip
    try:
        code = follow(command, progress, log, sys.stderr)
    except KeyboardInterrupt:
        print("\nInterrupted; the next `make` goes on from here.", file=sys.stderr)
        return 130
    if code == 0:
        seconds = time.monotonic() - started
        print(f"{len(progress.packages)} locked packages are installed ({seconds:.0f} s; {log}).")
    return code


if __name__ == "__main__":
    sys.exit(main())
