# SPDX-License-Identifier: Apache-2.0
"""What a tuple of an as-of join costs on an index, from the tables of the host to its answer."""

from pathlib import Path

import numpy as np

from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host import open_device
from host.engine.asof import AsofSearch, Times
from host.operators.asof import DeviceRows
from host.reference.types import Direction
from sim.verilated.library import build_library

from .registry import Result, figure

__all__ = ["asof_run"]

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
    bundle = Path("build") / "figures" / f"asof-{parameters.cores}x{parameters.window.sub_window}"
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
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
def cycles_per_tuple(report):
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
