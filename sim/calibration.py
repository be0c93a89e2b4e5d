# SPDX-License-Identifier: Apache-2.0
"""How fast this machine is while something is timed: a fixed kernel runs before and after it.

Seconds on a machine that others share say little: the same code took three times as long on one
day as on another. So a timed figure is judged by what it would be at the reference kernel's speed.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
import statistics
import subprocess

from .figures import Result
from .toolchain import find_toolchain, workers

__all__ = ["REFERENCE", "calibrated", "kernel_speed"]

#: Cycles of the kernel per second on the machine that goals are set for: a virtual machine with two
#: x86-64 processors, g++ 12, while nobody else uses its hardware. The goals are older than the
#: kernel. Two simulations that gave 2.7e8 to 3.0e8 and 9.6e7 to 1.1e8 comparisons/s there give
#: 8,100 and 2,900 for each cycle of the kernel, so its speed was about 35,000. Shared with others,
#: the same machine gives 20,000 to 32,000 (`python -m sim calibrate`).
REFERENCE = 35_000.0
#: Cycles of one run: a fraction of a second.
CYCLES = 10_000
#: Speeds before and after must be this near to one another, or the measurement is repeated …
STEADY = 0.1
#: … so often at the most, on average.
TRIES = 5
#: Seconds after which a run of the kernel has failed.
DEADLINE = 300


@cache
def kernel():
    """Compile the kernel, once in a process, and return the program."""
    program = (Path("build") / "figures" / "calibration").absolute()
    program.parent.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_suffix(".cpp")
    compiler = find_toolchain().compiler
    command = [compiler, "-std=gnu++17", "-O2", "-o", str(program), str(source)]
    subprocess.run(command, check=True, timeout=DEADLINE)
    return program


def kernel_speed(*, wall=False):
    """Return the cycles of the kernel in a second.

    Parameters
    ----------
    wall : bool
        Of wall-clock time, on all cores at once, for what keeps all of them busy. Otherwise, of CPU
        time on one core.
    """
    program = kernel()

    def run(_):
        done = subprocess.run(
            [program, str(CYCLES)], capture_output=True, text=True, check=True, timeout=DEADLINE
        )
        cycles, cpu, elapsed, _ = map(float, done.stdout.split())
        return cycles / (elapsed if wall else cpu)

    count = workers() if wall else 1
    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(run, range(count))) / count


def calibrated(run, *, runs, rate, report, wall=False, speed=kernel_speed):
    """Measure several times, each between two runs of the kernel; return the median.

    The speed of a shared machine changes within seconds, so a measurement counts only if the kernel
    was as fast behind it as before it, but for a tenth, and each is brought to the reference speed
    by its own two runs of the kernel. Others are repeated, a few times at the most: if too few
    count in the end, the figure is neither reached nor missed.

    Parameters
    ----------
    run : callable
        Measures once, for a second or so; returns the value, and instructions per unit of it or
        None.
    runs : int
        Measurements that are to count.
    rate : bool
        Whether the value is a rate, which grows with the machine's speed, or seconds.
    report : callable
        Receives lines about the progress.
    wall : bool
        What the seconds in the value are: wall-clock time on all cores, or CPU time of one.
    speed : callable
        :func:`kernel_speed`.
    """
    steady, others = [], []
    before = speed(wall=wall)
    for _ in range(TRIES * runs):
        value, instructions = run()
        after = speed(wall=wall)
        mean = (before + after) / 2
        apart = abs(after - before) / max(after, before)
        report(f"figures: {value:.4g}; kernel {before:,.0f} and {after:,.0f} cycles/s")
        factor = REFERENCE / mean
        taken = (value, value * factor if rate else value / factor, mean, instructions)
        (steady if apart <= STEADY else others).append(taken)
        if len(steady) == runs:
            break
        before = after
    values, judged, kernels, counts = zip(*(steady or others), strict=True)
    value, at_reference = statistics.median(values), statistics.median(judged)
    counted = None if None in counts else statistics.median(counts)
    note = (
        f"kernel {min(kernels):,.0f} to {max(kernels):,.0f} cycles/s in {len(steady)} of "
        f"{len(steady) + len(others)} runs that count; at its reference {REFERENCE:,.0f}: "
        f"{at_reference:.4g} ({min(judged):.4g} to {max(judged):.4g}); instructions per unit: "
        f"{'-' if counted is None else f'{counted:,.0f}'}"
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
