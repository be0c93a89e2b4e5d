# SPDX-License-Identifier: Apache-2.0
"""Calibrate timed figures by the speed of a fixed kernel that runs in turn with the timed code.

On a machine that is shared with others, seconds say little: the same code took three times as long
on one day as on another, and its speed changes within tenths of a second. Therefore the kernel and
the timed code take turns, and a figure is judged by the value that it would have if the kernel ran
at its reference speed. The kernel is a simulated circuit, because the influence of other users
depends on the kind of code. Kernels of random loads and branches, and of straight arithmetic, left
up to 30 % of the variation unexplained; a circuit leaves 5 %.
"""

from concurrent.futures import ThreadPoolExecutor
import ctypes
from functools import cache
import os
from pathlib import Path
import platform
import statistics
import struct

from host.installation import processors
from sim.verilated.library import cached, cached_runtime, hash_of, made_with
from sim.verilated.toolchain import Heartbeat, find_toolchain, run_all

from .registry import Result

__all__ = ["REFERENCE", "Instructions", "calibrated", "kernel_speed"]

#: Speed of the kernel, in cycles per second, on the machine for which the goals are set: a virtual
#: machine with two x86-64 processors and g++ 12, while nobody else uses its hardware. The goals are
#: older than the kernel, so its speed there was derived from two simulations. They made 2.7e8 to
#: 3.0e8 and 9.6e7 to 1.1e8 comparisons/s on that machine, and make 65.5 and 23.8 comparisons per
#: cycle of the kernel, so the kernel's speed was 4.0e6 to 4.6e6. Shared with others, the same
#: machine gives 2.4e6 to 3.2e6 (`python -m bench calibrate`).
REFERENCE = 4.3e6
#: Kernel cycles per run, about half a second. They are cut into one slice more than the run has
#: parts.
CYCLES = 1_500_000
#: Largest relative difference between the kernel's speeds in the two halves of a run. A run with a
#: larger difference is repeated.
STEADY = 0.1
#: Largest number of runs that are made per run that should count.
TRIES = 5
#: The kernel's circuit and its harness. The kernel has its own compiler options, so that it stays
#: the same when the options of the kit's models change.
CIRCUIT, HARNESS = (Path(__file__).with_name(f"calibration.{kind}") for kind in ("v", "cpp"))
VERILATOR_FLAGS = [
    "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing",
    "--output-split", "0", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--quiet",
    "--top-module", "calibration", "-Mdir", ".",
]  # fmt: skip
COMPILER_FLAGS = [
    "-std=gnu++17", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-w", "-shared",
    "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0",
    "-DVM_TRACE_FST=0", "-DVM_TRACE_VCD=0", "-DVM_TRACE_SAIF=0", "-Wl,-Bsymbolic",
]  # fmt: skip


@cache
def kernel():
    """Return the kernel's function; compile the kernel unless it is in the cache of libraries."""
    tools = find_toolchain()
    sources = [path.read_text(encoding="utf-8") for path in (CIRCUIT, HARNESS)]
    parts = [*sources, *VERILATOR_FLAGS, *COMPILER_FLAGS, *made_with(tools)]
    name = f"calibration-{hash_of(parts)}.so"
    library = ctypes.CDLL(cached(name, lambda place, log: compiled(tools, place, log), report=str))
    function = library.run_kernel
    function.restype = ctypes.c_uint32
    function.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_double)]
    return function


def compiled(tools, folder, log):
    """Compile the kernel in ``folder``; return the path of the library."""
    what = "the calibration kernel"
    options = {"what": what, "log": log, "environment": tools.environment, "folder": folder}
    options["beat"] = Heartbeat(str).beat
    run_all([[tools.verilator, *VERILATOR_FLAGS, str(CIRCUIT)]], **options)
    include = tools.root / "include"
    model = folder / "model.cpp"
    model.write_text("".join(f'#include "{path.name}"\n' for path in sorted(folder.glob("*.cpp"))))
    command = [tools.compiler, *COMPILER_FLAGS, "-I", ".", "-I", include, "-I", include / "vltstd"]
    command += [model.name, HARNESS, cached_runtime(tools, what=what, report=str)]
    run_all([[*map(str, command), "-o", "kernel.so"]], **options)
    return folder / "kernel.so"


def run_kernel(cycles):
    """Run the kernel in this thread; return the CPU time and the wall-clock time in seconds."""
    seconds = (ctypes.c_double * 2)()
    kernel()(cycles, seconds)
    return tuple(seconds)


def kernel_speed(cycles=CYCLES, *, wall=False):
    """Return the kernel's speed in cycles per second.

    Parameters
    ----------
    cycles : int
        Number of cycles to run.
    wall : bool
        If true, the speed is per second of wall-clock time, with the kernel on all cores at once:
        for timed code that keeps all cores busy. Otherwise, it is per second of this thread's CPU
        time.
    """
    if not wall:
        return cycles / run_kernel(cycles)[0]
    kernel()  # so that one thread compiles it, before the pool starts
    count = processors()
    with ThreadPoolExecutor(count) as pool:
        return (
            sum(cycles / elapsed for _, elapsed in pool.map(run_kernel, [cycles] * count)) / count
        )


def in_turn(part, parts, wall, speed):
    """Run the kernel and ``part`` in turn, beginning and ending with the kernel.

    Returns
    -------
    amount, seconds : float
        Sums over the parts.
    instructions : int or None
        Sum over the parts; None if instructions cannot be counted.
    speeds : tuple of float
        Kernel speed in the first and in the second half of its slices, in cycles per second.
    """
    cycles = CYCLES // (parts + 1)
    taken = [cycles / speed(cycles, wall=wall)]
    made = []
    for _ in range(parts):
        made.append(part())
        taken.append(cycles / speed(cycles, wall=wall))
    amounts, seconds, counts = zip(*made, strict=True)
    half = len(taken) // 2
    speeds = tuple(half * cycles / sum(some) for some in (taken[:half], taken[-half:]))
    return sum(amounts), sum(seconds), None if None in counts else sum(counts), speeds


def calibrated(part, *, runs, parts, rate, report, wall=False, speed=kernel_speed):
    """Time something in runs of several parts, in turn with the kernel; return the median run.

    A run counts only if the kernel's speeds in the first and second half differ by at most a tenth.
    The value of a run is scaled to the reference speed by the kernel's slices between its parts.
    Runs that do not count are repeated, up to :data:`TRIES` times on average. If too few runs count
    in the end, the goal is neither reached nor missed.

    Parameters
    ----------
    part : callable
        Does one part of a run, of about a tenth of a second. Returns the amount of work, the
        seconds it took, and the number of instructions or None.
    runs : int
        Number of runs that must count.
    parts : int
        Number of parts in a run.
    rate : bool
        Whether the value is the amount of work per second, which grows with the machine's speed,
        or the seconds per unit of work.
    report : callable
        Receives lines about the progress.
    wall : bool
        Whether the seconds are wall-clock time on all cores, or CPU time.
    speed : callable
        Measures the kernel's speed, like :func:`kernel_speed`.
    """
    steady, others = [], []
    for _ in range(TRIES * runs):
        amount, seconds, instructions, speeds = in_turn(part, parts, wall, speed)
        value = amount / seconds if rate else seconds / amount
        report(f"figures: {value:.4g}; kernel {' and '.join(f'{s:,.0f}' for s in speeds)} cycles/s")
        mean = statistics.harmonic_mean(speeds)
        judged = value * (REFERENCE / mean if rate else mean / REFERENCE)
        taken = (value, judged, mean, instructions and instructions / amount)
        (steady if max(speeds) * (1 - STEADY) <= min(speeds) else others).append(taken)
        if len(steady) == runs:
            break
    values, judgements, kernels, counts = zip(*(steady or others), strict=True)
    value, at_reference = statistics.median(values), statistics.median(judgements)
    counted = None if None in counts else statistics.median(counts)
    note = (
        f"kernel {min(kernels):,.0f} to {max(kernels):,.0f} cycles/s in {len(steady)} of "
        f"{len(steady) + len(others)} runs that count; at its reference {REFERENCE:,.0f}: "
        f"{at_reference:.4g} ({min(judgements):.4g} to {max(judgements):.4g}); instructions per "
        f"unit: {'-' if counted is None else f'{counted:,.0f}'}"
    )
    return Result(
        value,
        judged=at_reference,
        decided=len(steady) == runs,
        notes=(note,),
        details={
            "kernel": [round(kernel, 1) for kernel in kernels],
            "kernel_reference": REFERENCE,
            "at_reference": round(at_reference, 6),
            "instructions_per_unit": counted,
        },
    )


# Instructions of a thread and of the threads that it starts, where counting them is allowed.

#: System call number of ``perf_event_open``, by machine.
CALLS = {"x86_64": 298, "aarch64": 241}
#: PERF_TYPE_HARDWARE and PERF_COUNT_HW_INSTRUCTIONS.
INSTRUCTIONS = (0, 1)
#: Count threads that start inside the context, but neither the kernel nor a hypervisor: inherit,
#: exclude_kernel, exclude_hv.
FLAGS = 1 << 1 | 1 << 5 | 1 << 6
#: Size of the first version of ``struct perf_event_attr``, all of whose fields are used here.
SIZE = 64


class Instructions:
    """Context manager that counts the instructions that this thread executes inside.

    Threads that the thread starts inside count as well. Containers often forbid counting.

    Parameters
    ----------
    event : tuple of int
        Type and number of the counted event.

    Attributes
    ----------
    count : int or None
        Number of instructions, set on leaving the context; None if they cannot be counted.
    """

    def __init__(self, event=INSTRUCTIONS):
        self.event = event
        self.count = None
        self._file = None

    def __enter__(self):
        number = CALLS.get(platform.machine())
        if number is not None and platform.system() == "Linux":
            kind, config = self.event
            attributes = struct.pack("=IIQQQQQIIQ", kind, SIZE, config, 0, 0, 0, FLAGS, 0, 0, 0)
            library = ctypes.CDLL(None, use_errno=True)
            handle = library.syscall(number, attributes, 0, -1, -1, 0)
            self._file = handle if handle >= 0 else None
        return self

    def __exit__(self, *error):
        if self._file is not None:
            (self.count,) = struct.unpack("=Q", os.read(self._file, 8))
            os.close(self._file)
            self._file = None
