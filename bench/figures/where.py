# SPDX-License-Identifier: Apache-2.0
"""Figure of predicates that an accelerator decides by a text: what they cost beside a band."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host import Query, open_device
from host.session.join import Join
from sim.verilated.library import build_library

from .registry import Result, figure

__all__ = ["compared_cycles"]

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
        write_bundle(parameters, folder / name)
        build_library(folder / name, report=report)
        query = Query(time="t", rows=1_000, where=WHERE)
        with open_device(f"sim:{folder / name}") as device:
            found.append(Join(*tables, query, device).run())
    assert found[0].table.equals(found[1].table)
    return found[0].cycles, found[1].cycles


@figure("where.cycles_per_tuple", unit="x", goal="<= 1.01")
def where_cycles(report):
    """Cycles of a join on an accelerator whose predicate is a text, by those of a band's.

    ``abs(l.x - r.x) <= 3`` over a 16-bit field: four cores of 256 tuples, two lanes, four probes,
    windows of 1,000 rows, from Arrow to Arrow.
    """
    own, beside = compared_cycles(1 << 15, Path("build") / "figures" / "where", report)
    return Result(own / beside, notes=(f"{own} and {beside} cycles of {1 << 16} tuples",))
