# SPDX-License-Identifier: Apache-2.0
"""Simulation speed of the index, relative to an earlier engine that could only be simulated."""

import io
import json
import os
from pathlib import Path
from statistics import median
import subprocess
import sys
import tarfile

from hdl.presets import PRESETS
from sim.benches.saturated_run import RARE

from .index import BAND, EQUI
from .registry import NotMeasured, Result, figure
from .timed_join import TUPLES

__all__ = ["DIRECT"]

#: The last commit with an index engine that could only be simulated (``pipelined=False``). Its
#: stages passed tuples on within a cycle, so that a cycle took less time to simulate, but no chip
#: could implement it.
DIRECT = "ca8bab9"
#: Parts of that commit that are needed to make a bundle and to join on it.
PARTS = ("hdl", "host", "sim", "docs/routing", "pyproject.toml")
#: Folder for the files of that commit.
FOLDER = Path("build") / "figures" / f"commit-{DIRECT}"
#: Parameters that gave the fastest simulation at that commit.
THEN = {"tuples_per_word": 1, "pipelined": False}
#: Probes per group of both engines: the number of the default device, then as now.
PROBES = PRESETS["demo-index"].engine.probes
#: Turns of each engine, and joins per turn. The first join of a turn finds cold caches.
TURNS, JOINS = 5, 3


def checked_out():
    """Return the folder with the files of :data:`DIRECT`; extract them first if necessary."""
    if FOLDER.is_dir():
        return FOLDER
    command = ["git", "archive", "--format=tar", DIRECT, *PARTS]
    try:
        files = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotMeasured(f"needs commit {DIRECT} of a whole clone of this repository") from error
    temporary = FOLDER.with_name(f".{FOLDER.name}.{os.getpid()}")
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(temporary, filter="data")
    temporary.replace(FOLDER)
    return FOLDER


def tuples_per_second(folder, bundle, join):
    """Return the rate of the fastest of several joins that run with the code in ``folder``."""
    command = [sys.executable, "-P", str(Path(__file__).with_name("timed_join.py")), str(bundle)]
    run = subprocess.run(
        command, input=json.dumps(join), text=True, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return TUPLES / min(seconds for seconds, *_ in json.loads(run.stdout))


def ratio(parameters, bounds, values, report):
    """Return the rate of today's index divided by that of the earlier one; both run in turns."""
    folders = {"direct": checked_out().absolute(), "index": Path.cwd()}
    today = parameters.with_(probes=PROBES).words()
    earlier = {**today, **THEN}
    rates = {name: [] for name in folders}
    for _ in range(TURNS):
        for name, wanted in (("direct", earlier), ("index", today)):
            bundle = Path("build") / "figures" / f"ratio-{name}-{parameters.predicate.kind}"
            join = {"parameters": wanted, "bounds": bounds, "values": values, "joins": JOINS}
            rates[name].append(tuples_per_second(folders[name], bundle.absolute(), join))
            report(f"figures: {name}: {rates[name][-1] / 1e6:.2f} million tuples per second")
    turns = [one / other for one, other in zip(rates["index"], rates["direct"], strict=True)]
    now, then = (median(rates[name]) / 1e6 for name in ("index", "direct"))
    spread = f"ratios of {TURNS} turns from {min(turns):.2f} to {max(turns):.2f}"
    return Result(
        median(turns),
        notes=(f"medians {now:.2f} and {then:.2f} million tuples/s, {spread}",),
        details={"turns": [round(turn, 3) for turn in turns]},
    )


@figure("index.equi.sim_ratio_direct", unit="times", goal=">= 1.0")
def equi_ratio(report):
    """Tuples per second from Arrow to Arrow, relative to the engine that could only be simulated.

    Windows hold 2**16 tuples per side. Keys are uniform, with one result per tuple. Groups have 64
    probes, as in the default device, and a star comes every 1,024 probes. Each engine runs with the
    host code of its own commit. The floor is 0.75: below it, using the same circuit in simulation
    and on the chip would cost users of the simulator more than it is worth.
    """
    return ratio(EQUI, {"x": 0}, 1 << 16, report)


@figure("index.band.sim_ratio_direct", unit="times", goal=">= 1.0")
def band_ratio(report):
    """The figure of :func:`equi_ratio` for the paper's band: +-10 in fields of 10,000 values."""
    return ratio(BAND, dict.fromkeys("xy", RARE), 10_000, report)
