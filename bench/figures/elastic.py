# SPDX-License-Identifier: Apache-2.0
"""What an elastic join saves on STRETCH's phases of rates, and whether a deadline is missed."""

from statistics import median

from bench.experiments.elastic import CONTROLLERS, ElasticPoint
from bench.experiments.sweep import sweep

from .registry import Result, figure

__all__ = ["DEADLINE", "SEEDS"]

#: Longest time from the arrival of a tuple to its answer, in seconds of the load.
DEADLINE = 1.0
#: Draws of the phases and of the rows. The controllers are compared on the first one.
SEEDS = (0, 1, 2)


@figure("elastic.core_cycles_saved", unit="of the core cycles", goal=">= 0.4")
def core_cycles_saved(report):
    """Core cycles that the energy controller saves on Q5's phases, beside all cores all the time.

    20 minutes of phases of 100 to 300 seconds, each with a constant rate between 500 and 8,000
    tuples per second, a window of a minute and 8 cores. A core counts while it takes turns or holds
    a tuple of a window. The phases are drawn three times; the value is the middle one. How much can
    be saved depends on the draw, because the work grows with the square of the rate. The deadline
    of a tuple is a second; if the controller misses one that the fixed cores keep, the saving does
    not count. Answers are compared with the reference join.
    """
    points = [ElasticPoint("q5", controller) for controller in CONTROLLERS]
    points += [
        ElasticPoint("q5", controller, seed=seed)
        for seed in SEEDS[1:]
        for controller in ("fixed", "energy")
    ]
    found = {(point.seed, point.controller): one for point, one in sweep(points, report).items()}
    saved = {seed: found[seed, "energy"]["saved"] for seed in SEEDS}
    late = any(
        found[seed, "energy"]["longest_seconds"]
        > max(DEADLINE, found[seed, "fixed"]["longest_seconds"])
        for seed in SEEDS
    )
    middle = median(saved.values())
    return Result(
        middle,
        judged=0.0 if late else middle,
        notes=tuple(
            f"draw {seed}, {name}: {one['saved']:.3f} saved, {one['changes']} changes, longest "
            f"latency {one['longest_seconds']:.2f} s"
            for (seed, name), one in found.items()
        ),
        details={"draws": {str(seed): {name: one for (of, name), one in found.items() if of == seed}
                           for seed in SEEDS}},
    )  # fmt: skip
