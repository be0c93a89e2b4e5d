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
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host.devices.bundles import SIMULATED, choose_device
from sim.verilated.library import build_library

from .registry import NotMeasured, Result, figure

__all__ = ["TURNS"]

#: Timed turns of each race.
TURNS = 9
FOLDER = Path("build") / "bench" / "peers"
OURS, ALONE, NARROW = "host", "its simulation alone", "host on an index of one key"
DEFAULT = PRESETS["demo-index"]
#: The default index without what an equality of keys does not need: a second field, and bands. An
#: as-of join does without timestamps as well, because its device gets rows in their order.
ONE_KEY = DEFAULT.with_(keys=DEFAULT.keys[:1], comparator="equality")
ONE_KEY_UNTIMED = ONE_KEY.with_(timestamp_bits=0)


def compared(question, peers, judged, report, narrow=None):
    """Race the kit's command against peers; return the ratio to the one that is judged.

    Parameters
    ----------
    question : str
        Name of the question, which is that of a function in every module of queries.
    peers : dict of str to str
        Modules of :mod:`bench.peers` by the package that they need.
    judged : str
        The peer that the figure is about.
    report : callable
        Receives lines about the progress.
    narrow : JoinParameters, optional
        An accelerator that is made for the question, and takes turns with the default one.
    """
    missing = [package for package in peers if find_spec(package) is None]
    if missing:
        raise NotMeasured(f"needs {' and '.join(missing)}: make bench-peers installs them")
    workload = Workload(FOLDER)
    workload.write()
    command = partial(getattr(kit, question), workload)
    bundle = choose_device(SIMULATED, kit.ALIKE).uri.removeprefix(SIMULATED)
    ways = {OURS: partial(command, f"sim:{bundle}")}
    if narrow is not None:
        ways[NARROW] = partial(command, _built(narrow, question, report))
    for package, module in peers.items():
        query = getattr(import_module(f"bench.peers.{module}"), question)
        ways[package] = partial(query, workload)
    recording = recorded(lambda uri: command(uri, FOLDER / f"{OURS}.parquet"), bundle)
    cycles = simulate(recording)
    beside = {ALONE: partial(simulate, recording)}
    found = race(ways, FOLDER, turns=TURNS, key=["t", "rt"], beside=beside)
    ratio, *_ = found.ratio(found.wall, OURS, judged)
    notes = [
        f"{workload.rows:,} rows a side, {found.rows:,} results, {cycles:,} cycles",
        f"two threads, {TURNS} turns",
    ]
    for package in peers:
        notes += found.notes(OURS, package)
    for name in (ALONE, NARROW):
        if name in found.wall:
            notes += found.notes(name, judged)
    return Result(ratio, notes=tuple(notes))


def _built(parameters, question, report):
    """Return the URI of a simulated accelerator."""
    bundle = FOLDER / f"index-{question}"
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
    return f"sim:{bundle}"


@figure("host.band.ratio_duckdb_grid", unit="times", goal=None)
def band(report):
    """Seconds of `host join` on a simulated index over those of DuckDB with a grid by hand.

    A band of two fields within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    return compared("band", {"duckdb": "duckdb_queries"}, "duckdb", report)


@figure("host.equi.ratio_polars", unit="times", goal=None)
def equality(report):
    """Seconds of `host join` on a simulated index over those of Polars; DuckDB stands beside them.

    An equality of keys within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    peers = {"polars": "polars_queries", "duckdb": "duckdb_queries"}
    return compared("equality", peers, "polars", report, ONE_KEY)


@figure("asof.ratio_duckdb", unit="times", goal=None)
def asof(report):
    """Seconds of `host asof` on a simulated index over those of DuckDB; Polars stands beside them.

    The last right row of a key that is at most 20,000 moments old, from Parquet to Parquet.
    """
    peers = {"duckdb": "duckdb_queries", "polars": "polars_queries"}
    return compared("asof", peers, "duckdb", report, ONE_KEY_UNTIMED)


# The software engine, which needs no device, in the same way: processor time over that of the best
# peer, as it works on one thread and they on two.

#: Turns of a race of the software engine: more where they take a tenth of a second, and so differ
#: by a third from one another. Those of more rows than :data:`SHORT` are long.
SHORT, SHORT_TURNS, LONG_TURNS = 1_000_000, 11, 3
_PEERS = {
    "band": {"duckdb": "duckdb_queries"},
    "equality": {"duckdb": "duckdb_queries", "polars": "polars_queries"},
    "asof": {"duckdb": "duckdb_queries", "polars": "polars_queries"},
    "aggregate": {"duckdb": "duckdb_queries", "polars": "polars_queries"},
}


def in_software(question, **sizes):
    """Race a command without a device against peers; return the ratio to the quickest one."""
    peers = _PEERS[question]
    missing = [package for package in peers if find_spec(package) is None]
    if missing:
        raise NotMeasured(f"needs {' and '.join(missing)}: make bench-peers installs them")
    workload = Workload(FOLDER / "software", **sizes)
    workload.write()
    ways = {OURS: partial(getattr(kit, question), workload, None)}
    for package, module in peers.items():
        query = getattr(import_module(f"bench.peers.{module}"), question)
        ways[package] = partial(query, workload)
    key = ["window_start", "k"] if question == "aggregate" else ["t", "rt"]
    turns = SHORT_TURNS if workload.rows <= SHORT else LONG_TURNS
    found = race(ways, workload.folder, turns=turns, key=key)
    best = min(peers, key=lambda package: median(found.processor[package]))
    ratio, *_ = found.ratio(found.processor, OURS, best)
    notes = [f"{workload.rows:,} rows a side, {found.rows:,} results, {turns} turns"]
    for package in peers:
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
