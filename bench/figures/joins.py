# SPDX-License-Identifier: Apache-2.0
"""Figures of joins of tables: as of a time, by a text, of real inputs, and of a modelled index."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.real_inputs import EARTHQUAKES, FLIGHTS, connections, earthquakes, fetch, write_streams
from bench.simulated import FOLDER, built
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from host import Query, open_device
from host.devices.bundles import SIMULATED, choose_device
from host.engine.asof import AsofSearch, Times
from host.operators.asof import DeviceRows
from host.reference.types import Direction
from host.session.join import Join

from .registry import NotMeasured, Result, figure

__all__ = [
    "ORDERED_WINDOW",
    "SUB_WINDOW",
    "YOUNG",
    "asof_run",
    "compared_cycles",
    "joined",
    "ordered_cycles",
    "runs_of",
]

# What a tuple of an as-of join costs on an index, from the tables of the host to its answer.

#: The accelerator, a routed one; rows of each side; different keys.
PRESET, ROWS, KEYS = "ecp5-index", 1 << 19, 1 << 10


def asof_run(parameters, *, rows, keys, report, window=None):
    """Join random rows as of the time, compare every answer, and count cycles.

    Each side has a row at every time, with a random key. So many right rows are within the
    tolerance as ``window`` says, by default as many as the accelerator holds.

    Returns
    -------
    dict
        ``cycles_per_tuple`` of the hardware's counters, with all control words and the end of the
        join; ``results_per_left_row`` and ``reads_per_left_row``, the entries of the index.
    """
    name = f"asof-{parameters.cores}x{parameters.window.sub_window}"
    bundle = built(parameters, name, report)
    generator = np.random.default_rng(26)
    left, right = (
        Times(np.arange(rows, dtype=np.uint64), generator.integers(0, keys, rows)) for _ in range(2)
    )
    tolerance = (parameters.capacity if window is None else window) - 1
    with open_device(f"sim:{bundle}") as device:
        found_by = DeviceRows(left, right, device, tolerance=tolerance)
        search = AsofSearch(Direction.BACKWARD, tolerance)
        found = search.rows(left, right, found_by)
        counts = found_by.counters
    if not (found == search.rows(left, right)).all():
        raise AssertionError("the device has found other rows than the host")
    if found_by.looked_up:
        raise AssertionError(f"{found_by.looked_up} rows were not answered by the device")
    return {
        "cycles_per_tuple": counts["cycles"] / (counts["tuples_r"] + counts["tuples_s"]),
        "results_per_left_row": counts["results"] / rows,
        "reads_per_left_row": counts["region_busy"] / rows,
    }


@figure("asof.cycles_per_tuple", unit="cycles", goal="<= 1.05")
def asof_cycles_per_tuple(report):
    """Cycles per tuple of either side of a backward as-of join, by the hardware's counters.

    The preset `ecp5-index` (one core), two tuples in a word. Sides alternate with uniform keys,
    1,024 different ones, and the right rows of a full window are within the tolerance. Every answer
    is compared with the host's. Beside it: the same windows in two and in four cores, each of which
    answers with its newest row, and a window that one of four cores holds.
    """
    shape = PRESETS[PRESET]
    run = asof_run(shape, rows=ROWS, keys=KEYS, report=report)
    notes = [describe(1, shape.capacity, run)]
    for cores, storing in ((2, 2), (4, 4), (4, 1)):
        more = shape.with_(cores=cores, sub_window=shape.window.sub_window // cores, bucket_bits=12)
        window = storing * more.window.sub_window
        one = asof_run(more, rows=ROWS >> 2, keys=KEYS, report=report, window=window)
        notes.append(describe(cores, window, one))
    return Result(run["cycles_per_tuple"], notes=tuple(notes), details=run)


def describe(cores, window, run):
    """Say what a run has cost."""
    return (
        f"{cores} core{'s' if cores > 1 else ''}, {window} rows within the tolerance: "
        f"{run['cycles_per_tuple']:.3f} cycles per tuple, "
        f"{run['results_per_left_row']:.3f} results and {run['reads_per_left_row']:.2f} entries "
        f"read per left row"
    )


# Predicates that an accelerator decides by a text: what they cost beside a band.

BAND = JoinParameters.of(
    cores=4, sub_window=256, lanes=2, probes=4, keys=(KeyField(name="x", bits=16),)
)
WHERE = "abs(l.x - r.x) <= 3"


def compared_cycles(rows, folder, report):
    """Return the cycles of a join by a text, and by a band that says the same.

    Parameters
    ----------
    rows : int
        Rows of each side.
    folder : Path
        Where the bundles go.
    report : callable
        Told what is being built.
    """
    tables = [
        pa.table({"t": np.arange(rows), "x": np.random.default_rng(seed).integers(0, 10_000, rows)})
        for seed in (1, 2)
    ]
    found = []
    for name, parameters in (
        ("where", BAND.with_(comparator="custom", where=WHERE)),
        ("band", BAND),
    ):
        bundle = built(parameters, name, report, folder=folder)
        query = Query(time="t", rows=1_000, where=WHERE)
        with open_device(f"sim:{bundle}") as device:
            found.append(Join(*tables, query, device).run())
    assert found[0].table.equals(found[1].table)
    return found[0].cycles, found[1].cycles


@figure("where.cycles_per_tuple", unit="x", goal="<= 1.01")
def where_cycles(report):
    """Cycles of a join on an accelerator whose predicate is a text, by those of a band's.

    ``abs(l.x - r.x) <= 3`` over a 16-bit field: four cores of 256 tuples, two lanes, four probes,
    windows of 1,000 rows, from Arrow to Arrow.
    """
    own, beside = compared_cycles(1 << 15, FOLDER / "where", report)
    return Result(own / beside, notes=(f"{own} and {beside} cycles of {1 << 16} tuples",))


# Connections of flights, and earthquakes near one another.

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
    paths = write_streams(_fetched(FLIGHTS), FOLDER / "real")
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


# An index that keeps order is not built: its cycles in a model stand beside those of the scan. The
# model is of sorted sub-windows. Tuples of a region are sorted in runs, as a merger builds them: a
# run of a sub-window, and behind the last of these, runs of halves of it down to YOUNG tuples. A
# probe searches each run in a cycle, since each level of a search has a memory of its own. It then
# reads the rows of sorted keys between the bounds, and compares the youngest tuples.

#: Tuples of a side's window, those of a sorted sub-window, and those that are not sorted yet.
ORDERED_WINDOW, SUB_WINDOW, YOUNG = 1 << 14, 1 << 12, 64
#: Keys that a region reads in a cycle, and that the scan reads and shares among its probes: `demo`.
LANES, READ, PROBES = 4, 16, 8
COUNT = 400
#: Bounds of ``r - s`` for values that are uniform in 1 .. 10,000.
ASKED = ((9_900, None), (9_000, None), (-10, 10), (-158, 158), (-1_000, 1_000))


def runs_of(start, end):
    """Return the sorted runs of the tuples of a window, and how many of them are in none."""
    sealed = end // SUB_WINDOW * SUB_WINDOW
    runs = [
        (at, at + SUB_WINDOW) for at in range(start // SUB_WINDOW * SUB_WINDOW, sealed, SUB_WINDOW)
    ]
    size, rest = SUB_WINDOW // 2, end - sealed
    while size >= YOUNG:
        if rest >= size:
            runs.append((end - rest, end - rest + size))
            rest -= size
        size //= 2
    return runs, rest


def ordered_cycles(low, high):
    """Return cycles and results of a probe on average, in one region.

    Parameters
    ----------
    low, high : int or None
        Inclusive bounds of the difference of a stored value and that of the probe.
    """
    generator = np.random.default_rng(1)
    values = generator.integers(1, 10_001, 4 * ORDERED_WINDOW)
    cycles = results = 0
    for number in range(COUNT):
        end = 2 * ORDERED_WINDOW + 7 * number
        probe = values[-1 - number]
        least = -np.inf if low is None else probe + low
        most = np.inf if high is None else probe + high
        runs, rest = runs_of(end - ORDERED_WINDOW, end)
        for begin, behind in runs:
            first, last = np.searchsorted(np.sort(values[begin:behind]), [least, most + 0.5])
            rows = 0 if last <= first else (last - 1) // LANES - first // LANES + 1
            cycles += 1 + int(rows)
        cycles += -(-rest // READ)
        live = values[end - ORDERED_WINDOW : end]
        results += int(((live >= least) & (live <= most)).sum())
    return cycles / COUNT, results / COUNT


@figure("ordered_index.band_wide_cycles", unit="cycles", goal="<= 12.8")
def band_wide_cycles(report):
    """Cycles per tuple of ``r - s >= 9,900`` in the model, with windows of 2^14 tuples.

    The goal is a fifth of those of the scan of preset `demo`. Both regions work at once, and a
    cycle has one result.
    """
    scan, notes, found = ORDERED_WINDOW / READ / PROBES / 2, [], []
    for low, high in ASKED:
        cycles, results = ordered_cycles(low, high)
        found.append(max(cycles / 2, results))
        bounds = f"{'' if low is None else low} .. {'' if high is None else high}"
        notes.append(
            f"{bounds}: reads take {cycles / 2:.1f} cycles and results {results:.1f}; the scan's "
            f"reads {scan:.0f}: {found[-1] / max(scan, results):.2f} of its cycles"
        )
        report(f"figures: {notes[-1]}")
    return Result(found[0], notes=tuple(notes))
