# SPDX-License-Identifier: Apache-2.0
"""What an elastic join saves on STRETCH's phases of rates, and whether a deadline is missed."""

from sim.experiments.elastic_figures import sweep_elastic
from sim.experiments.elastic_run import CONTROLLERS, ElasticPoint

from .registry import Result, figure

__all__ = ["DEADLINE"]

#: Longest time from the arrival of a tuple to its answer, in seconds of the load.
DEADLINE = 1.0


@figure("elastic.core_cycles_saved", unit="of the core cycles", goal=">= 0.4")
def core_cycles_saved(report):
    """Core cycles that the energy controller saves on Q5's phases, beside all cores all the time.

    20 minutes of phases of 100 to 300 seconds, each with a constant rate between 500 and 8,000
    tuples per second, a window of a minute and 8 cores. A core counts while it takes turns or holds
    a tuple of a window. The deadline of a tuple is a second; if the controller misses one that the
    fixed cores keep, the saving does not count. Answers are compared with the reference join.
    """
    points = [ElasticPoint("q5", controller) for controller in CONTROLLERS]
    found = sweep_elastic(points, report)
    by_name = {point.controller: measured for point, measured in found.items()}
    late = by_name["energy"]["longest_seconds"] > max(DEADLINE, by_name["fixed"]["longest_seconds"])
    saved = by_name["energy"]["saved"]
    return Result(
        saved,
        judged=0.0 if late else saved,
        notes=tuple(
            f"{name}: {one['saved']:.3f} saved, {one['changes']} changes, longest latency "
            f"{one['longest_seconds']:.2f} s"
            for name, one in by_name.items()
        ),
        details={"controllers": by_name},
    )
