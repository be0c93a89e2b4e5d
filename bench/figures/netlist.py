# SPDX-License-Identifier: Apache-2.0
"""The figure of routed netlists: the results that differ from those of the software device."""

from hdl.fpga.tools import ToolError
from host.errors import MissingToolError
from sim.netlist.commands import run_netlist
from sim.netlist.shapes import SHAPES

from .registry import NotMeasured, Result, figure

__all__ = []

#: Least number of tuples that each netlist receives.
TUPLES = 100_000


@figure("netlist.differences", unit="results", goal="<= 0")
def netlist_differences(report):
    """Number of results of all small netlists that differ from the software device's results."""
    try:
        rows = [
            run_netlist(name, parameters, tuples=TUPLES, seed=1, report=report)
            for name, parameters in SHAPES.items()
        ]
    except (ToolError, MissingToolError) as error:
        raise NotMeasured(str(error)) from error
    least = min(row["tuples"] for row in rows)
    results = sum(row["results"] for row in rows)
    note = f"{len(rows)} netlists, {least:,} tuples each at the least, {results:,} results"
    return Result(
        sum(row["differences"] for row in rows), notes=(note,), details={"netlists": rows}
    )
