# SPDX-License-Identifier: Apache-2.0
"""How the commands of the host compare with DuckDB and Polars, on simulated devices."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from host.bundles.default_device import default_device
from sim.peers import kit
from sim.peers.race import race
from sim.peers.workload import Workload

from .registry import NotMeasured, Result, figure

__all__ = ["TURNS"]

#: Timed turns of each race.
TURNS = 9
FOLDER = Path("build") / "bench" / "peers"
OURS = "host"


def compared(question, peers, judged):
    """Race the kit's command against peers; return the ratio to the one that is judged.

    Parameters
    ----------
    question : str
        Name of the question, which is that of a function in every module of queries.
    peers : dict of str to str
        Modules of :mod:`sim.peers` by the package that they need.
    judged : str
        The peer that the figure is about.
    """
    missing = [package for package in peers if find_spec(package) is None]
    if missing:
        raise NotMeasured(f"needs {' and '.join(missing)}: make bench-peers installs them")
    workload = Workload(FOLDER)
    workload.write()
    device = default_device(kit.ALIKE).uri
    ways = {OURS: partial(getattr(kit, question), workload, device)}
    for package, module in peers.items():
        query = getattr(import_module(f"sim.peers.{module}"), question)
        ways[package] = partial(query, workload)
    found = race(ways, FOLDER, turns=TURNS, key=["t", "rt"])
    ratio, *_ = found.ratio(found.wall, OURS, judged)
    size = f"{workload.rows:,} rows a side, {found.rows:,} results, two threads, {TURNS} turns"
    notes = [size, *(note for package in peers for note in found.notes(OURS, package))]
    return Result(ratio, notes=tuple(notes))


@figure("host.band.ratio_duckdb_grid", unit="times", goal="<= 1.0")
def band(report):
    """Seconds of `host join` on a simulated index over those of DuckDB with a grid by hand.

    A band of two fields within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    return compared("band", {"duckdb": "duckdb_queries"}, "duckdb")


@figure("host.equi.ratio_polars", unit="times", goal="<= 2.0")
def equality(report):
    """Seconds of `host join` on a simulated index over those of Polars; DuckDB stands beside them.

    An equality of keys within a window of 20,000 moments, from Parquet to Parquet, in one process.
    """
    peers = {"polars": "polars_queries", "duckdb": "duckdb_queries"}
    return compared("equality", peers, "polars")


@figure("asof.ratio_duckdb", unit="times", goal="<= 3")
def asof(report):
    """Seconds of `host asof` on a simulated index over those of DuckDB; Polars stands beside them.

    The last right row of a key that is at most 20,000 moments old, from Parquet to Parquet.
    """
    peers = {"duckdb": "duckdb_queries", "polars": "polars_queries"}
    return compared("asof", peers, "duckdb")
