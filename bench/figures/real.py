# SPDX-License-Identifier: Apache-2.0
"""Figures of real inputs: connections of flights, and earthquakes near one another."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.real_inputs import (
    EARTHQUAKES,
    FLIGHTS,
    connections,
    earthquakes,
    fetch,
    write_streams,
)
from host import Query, open_device
from host.devices.bundles import SIMULATED, choose_device
from host.session.join import Join

from .registry import NotMeasured, Result, figure

__all__ = ["joined"]

FOLDER = Path("build") / "figures" / "real"
#: A window of as many hours, and a box of as many ten-thousandths of a degree on either side.
HOURS, REACH = 24, 5_000


def joined(left, right, query):
    """Join on the simulated accelerator that the kit chooses; return the join's result."""
    uri = choose_device(SIMULATED, query, tuples=left.num_rows, build=True).uri
    with open_device(uri) as device:
        return Join(left, right, query, device).run()


def _fetched(path):
    try:
        return fetch(path)
    except OSError as error:
        raise NotMeasured(f"{path} is not there: {error}") from error


@figure("real.flights.cycles_per_tuple", unit="cycles", goal=None)
def flights(report):
    """Cycles per tuple to find the connections among 20,000 flights.

    An arrival and a departure at the same airport, 30 to 180 minutes later: an equality and a band
    of times, on the default index. Every connection is compared with pandas' own merge.
    """
    paths = write_streams(_fetched(FLIGHTS), FOLDER)
    expected = connections(*paths)
    tables = [pq.read_table(path) for path in paths]
    band = [("time", "time", "-180min", "-30min")]
    query = Query(time="time", on="airport", band=band, within="180min")
    found = joined(*tables, query)
    table = found.table.to_pandas()
    if table.to_dict("list") != expected.to_dict("list"):
        raise AssertionError(f"{len(table)} connections, {len(expected)} of pandas, or others")
    return _result(found, sum(table.num_rows for table in tables))


@figure("real.earthquakes.cycles_per_tuple", unit="cycles", goal=None)
def quakes(report):
    """Cycles per tuple to find the pairs of earthquakes near one another within a day.

    Half a degree of longitude and of latitude: a band of two fields over a stream that is joined
    with itself, each pair once. Compared with all pairs, by NumPy.
    """
    table = earthquakes(_fetched(EARTHQUAKES))
    band = [(name, name, -REACH, REACH) for name in ("x", "y")]
    query = Query(time="time", band=band, within=f"{HOURS}h", pairs="once")
    found = joined(table, table, query)
    time = table["time"].to_numpy().astype(np.int64)
    near = np.triu(np.ones((len(time),) * 2, np.bool_), 1)
    near &= np.abs(time[:, None] - time) <= HOURS * 3_600_000
    for name in ("x", "y"):
        values = table[name].to_numpy().astype(np.int64)
        near &= np.abs(values[:, None] - values) <= REACH
    expected = set(zip(*(rows.tolist() for rows in np.nonzero(near)), strict=True))
    pairs = {tuple(sorted(pair)) for pair in zip(*map(np.ndarray.tolist, found.pairs), strict=True)}
    if pairs != expected or len(found.pairs[0]) != len(expected):
        raise AssertionError(f"{len(found.pairs[0])} pairs, {len(expected)} of NumPy, or others")
    return _result(found, 2 * table.num_rows)


def _result(found, tuples):
    note = f"{tuples:,} tuples, {found.table.num_rows:,} results, none missing, wrong or repeated"
    return Result(found.cycles / tuples, notes=(note,))
