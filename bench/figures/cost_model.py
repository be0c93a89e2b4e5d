# SPDX-License-Identifier: Apache-2.0
"""Figures of the cost model: how far it is from the hardware counters."""

from pathlib import Path

from .model_sweep import ACCELERATORS, sweep, worst
from .registry import Result, figure

__all__ = ["RECORD"]

#: What was measured last, beside the model.
RECORD = Path(__file__).parents[2] / "docs" / "cost-model.csv"


@figure("model.worst_error", unit="of 1", goal="<= 0.05")
def worst_error(report):
    """The largest error of the model's cycles and latencies, from 1 to 64 cores, both engines.

    Without those loads under which results are many; their largest error is told below.
    """
    rows = sweep(list(ACCELERATORS), Path("build") / "model" / "model.csv", report)
    crowded = worst(rows, crowded=True)
    return Result(worst(rows), notes=(f"{crowded:.3f} where results are many",))
