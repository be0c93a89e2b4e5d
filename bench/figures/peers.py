# SPDX-License-Identifier: Apache-2.0
"""How the commands of the host compare with DuckDB and Polars, on simulated devices."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.peers import kit
from bench.peers.alone import recorded, simulate
from bench.peers.race import race
from bench.peers.workload import Workload
from bench.simulated import built
from hdl.presets import PRESETS
from host.devices.bundles import SIMULATED, choose_device

from .registry import NotMeasured, Result, figure

__all__ = ["TURNS"]

#: Timed turns of each race.
TURNS = 9
FOLDER = Path("build") / "bench" / "peers"
#: Packages that answer each question, by ``bench.peers.PACKAGE_queries``.
PEERS = {
    "band": ("duckdb",),
    "equality": ("duckdb", "polars"),
    "asof": ("duckdb", "polars"),
    "aggregate": ("duckdb", "polars"),
}
OURS, ALONE, NARROW = "host", "its simulation alone", "host on an index of one key"
DEFAULT = PRESETS["demo-index"]
#: The default index without what an equality of keys does not need: a second field, and bands. An
#: as-of join does without timestamps as well, because its device gets rows in their order.
ONE_KEY = DEFAULT.with_(keys=DEFAULT.keys[:1], comparator="equality")
ONE_KEY_UNTIMED = ONE_KEY.with_(timestamp_bits=0)


def ways_of(question, workload, ours):
    """Write the files of a workload; return the ways to answer a question, the kit's own first.

    Parameters
    ----------
    question : str
        Name of the question, which is that of a function in every module of queries.
    workload : Workload
        What all of them read.
    ours : dict of str to str or None
        Devices of the kit's ways; None is none.

    Raises
    ------
    NotMeasured
        If a peer is not installed.
    """
    peers = PEERS[question]
    missing = [package for package in peers if find_spec(package) is None]
    if missing:
        raise NotMeasured(f"needs {' and '.join(missing)}: make bench-peers installs them")
    workload.write()
    command = getattr(kit, question)
    return {name: partial(command, workload, device) for name, device in ours.items()} | {
        package: partial(
            getattr(import_module(f"bench.peers.{package}_queries"), question), workload
        )
        for package in peers
    }


def compared(question, judged, report, narrow=None):
    """Race the kit's command on a simulated device; return the ratio to the peer that is judged.

    Parameters
    ----------
    question : str
        See :func:`ways_of`.
    judged : str
        The peer that the figure is about.
    report : callable
        Receives lines about the progress.
    narrow : JoinParameters, optional
        An accelerator that is made for the question, and takes turns with the default one.
    """
    workload = Workload(FOLDER)
    bundle = choose_device(SIMULATED, kit.ALIKE).uri.removeprefix(SIMULATED)
    ours = {OURS: f"sim:{bundle}"}
    if narrow is not None:
        ours[NARROW] = f"sim:{built(narrow, f'index-{question}', report, folder=FOLDER)}"
    ways = ways_of(question, workload, ours)
    command = partial(getattr(kit, question), workload)
    recording = recorded(lambda uri: command(uri, FOLDER / f"{OURS}.parquet"), bundle)
    cycles = simulate(recording)
    beside = {ALONE: partial(simulate, recording)}
    found = race(ways, FOLDER, turns=TURNS, key=["t", "rt"], beside=beside)
    ratio, *_ = found.ratio(found.wall, OURS, judged)
    notes = [
        f"{workload.rows:,} rows a side, {found.rows:,} results, {cycles:,} cycles",
        f"two threads, {TURNS} turns",
    ]
    # The judged peer stands first.
    for package in sorted(PEERS[question], key=lambda package: package != judged):
        notes += found.notes(OURS, package)
    for name in (ALONE, NARROW):
        if name in found.wall:
            notes += found.notes(name, judged)
    return Result(ratio, notes=tuple(notes))


@figure("host.band.ratio_duckdb_grid", unit="times", goal=None)
def band(report):
    """Seconds of `host join` on a simulated index over those of DuckDB with a grid by hand.

    A band of two fields within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    return compared("band", "duckdb", report)


@figure("host.equi.ratio_polars", unit="times", goal=None)
def equality(report):
    """Seconds of `host join` on a simulated index over those of Polars; DuckDB stands beside them.

    An equality of keys within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    return compared("equality", "polars", report, ONE_KEY)


@figure("asof.ratio_duckdb", unit="times", goal=None)
def asof(report):
    """Seconds of `host asof` on a simulated index over those of DuckDB; Polars stands beside them.

    The last right row of a key that is at most 20,000 moments old, from Parquet to Parquet.
    """
    return compared("asof", "duckdb", report, ONE_KEY_UNTIMED)


# The software engine, which needs no device, in the same way: processor time over that of the best
# peer, as it works on one thread and they on two.

#: Turns of a race of the software engine: more where they take a tenth of a second, and so differ
#: by a third from one another. Those of more rows than :data:`SHORT` are long.
SHORT, SHORT_TURNS, LONG_TURNS = 1_000_000, 11, 3


def in_software(question, **sizes):
    """Race a command without a device against peers; return the ratio to the quickest one."""
    workload = Workload(FOLDER / "software", **sizes)
    ways = ways_of(question, workload, {OURS: None})
    key = ["window_start", "k"] if question == "aggregate" else ["t", "rt"]
    turns = SHORT_TURNS if workload.rows <= SHORT else LONG_TURNS
    found = race(ways, workload.folder, turns=turns, key=key)
    best = min(PEERS[question], key=lambda package: median(found.processor[package]))
    ratio, *_ = found.ratio(found.processor, OURS, best)
    notes = [f"{workload.rows:,} rows a side, {found.rows:,} results, {turns} turns"]
    for package in PEERS[question]:
        notes += found.notes(OURS, package)
    return Result(ratio, notes=tuple(notes))


for _name, _goal, _question, _sizes in (
    ("software.band.ratio_duckdb_grid", "<= 0.8", "band", {}),
    ("software.band_2m.ratio_duckdb_grid", "<= 0.5", "band", {"rows": 2_000_000}),
    ("software.equi.ratio_best_peer", "<= 1.2", "equality", {}),
    ("software.equi_2m.ratio_best_peer", "<= 1.2", "equality", {"rows": 2_000_000}),
    ("software.asof.ratio_best_peer", "<= 1.5", "asof", {}),
    ("software.asof_2m.ratio_best_peer", "<= 1.5", "asof", {"rows": 2_000_000}),
    ("software.aggregate.ratio_best_peer", "<= 2", "aggregate", {}),
    ("software.skewed.ratio_best_peer", "<= 1", "equality", {"hot": 0.4, "within": 20}),
    ("software.clustered.ratio_duckdb_grid", "<= 1", "band", {"deviation": 100.0, "within": 500}),
):

    @figure(_name, unit="times", goal=_goal)
    def _measured(report, question=_question, sizes=_sizes):
        """Processor time of a command over that of the best peer, from Parquet to Parquet."""
        return in_software(question, **sizes)
