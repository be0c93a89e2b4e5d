# SPDX-License-Identifier: Apache-2.0
"""One elastic join under a load that rises and falls: what it used, and how long tuples waited."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host import (
    EnergyController,
    PredictiveController,
    ThresholdController,
    open_device,
)
from host.errors import FailureError
from host.operators.verification import compare_pairs, reference_pairs
from host.query.queries import Query, Term
from host.session.join import Join
from host.session.records import CoreChange, CoreDecision

from .hedge import WHERE, trades
from .rates import HIGHEST, decommissioning, market, phases, provisioning

__all__ = [
    "CONTROLLERS",
    "LOADS",
    "ElasticPoint",
    "accelerator_of",
    "cycles_of_second",
    "measure_elastic",
]

#: The accelerator, a scan whose cores compare one row in a cycle.
ACCELERATOR, CORES = "sj-8", 8
#: Load of all cores at the highest rate with full windows.
FULL = 0.75
#: … and the load that the energy controller holds: the latency that it is allowed has room for it.
HELD = 0.9
#: Rates over time, by the name of a load.
LOADS = {
    "q5": phases, "market": market, "hedge": market, "provisioning": provisioning,
    "decommissioning": decommissioning,
}  # fmt: skip
#: Fixed cores are all of them, or the first half.
HALF = [(0, tuple(range(CORES // 2)))]
CONTROLLERS = ("fixed", "threshold", "predictive", "energy")
#: Values of a field.
VALUES = 10_000


@dataclass(frozen=True)
class ElasticPoint:
    """What is measured.

    Parameters
    ----------
    load : str
        Name in :data:`LOADS`.
    controller : str
        One of :data:`CONTROLLERS`; "fixed" keeps all cores, and "half" the first half of them.
    tuples : int
        Tuples of a side in the window at the highest rate.
    seconds : int
        Length of the load.
    accelerator : str
        Name in :data:`bench.experiments.accelerators.ACCELERATORS`.
    seed : int
        Of the load and of the rows.
    width : int
        Half the width of the band of two fields with 10,000 values. By default a tuple has a fifth
        of a match in a window that is full, so that answers say something and their words are few.
    """

    load: str
    controller: str
    tuples: int = 512
    seconds: int = 1_200
    accelerator: str = ACCELERATOR
    seed: int = 0
    width: int = 100

    @property
    def rates(self):
        """The rates over time."""
        return LOADS[self.load](self.seconds, self.seed)


def accelerator_of(load):
    """Return the name of the accelerator for a load: hedges have a predicate of their own."""
    return "hedge-8" if load == "hedge" else ACCELERATOR


def cycles_of_second(point):
    """Return the clock cycles of a second, so that all cores have a load of :data:`FULL` at most.

    A core reads its part of the other side's window for each tuple, and both of its regions do so
    at once.
    """
    per_tuple = point.tuples / (2 * CORES * FULL)
    return per_tuple * 2 * point.tuples / point.rates.window


def controller_of(point):
    """Return the controller of a point; None for fixed cores.

    The controllers of STRETCH observe for half a second. The energy controller observes for a
    second, which is also its latency, and is told the highest rate.
    """
    second = cycles_of_second(point)
    interval = int(second / 2)
    if point.controller == "threshold":
        return ThresholdController(interval=interval)
    if point.controller == "predictive":
        return PredictiveController(interval=interval)
    if point.controller == "energy":
        highest = 2 * CORES * FULL / point.tuples
        return EnergyController(
            int(second), target=HELD, most=1, rate=highest, interval=int(second)
        )
    return None


def uniform(times, seed):
    """Return rows whose fields are uniform."""
    generator = np.random.default_rng(seed)
    fields = {name: generator.integers(1, VALUES + 1, len(times)) for name in "xy"}
    return pa.table({"t": times, **fields})


def question_of(point, times):
    """Return the rows of both sides, and what two of them must fulfil to match."""
    seed = 2 * point.seed + 1
    if point.load == "hedge":  # of one stream, in which each two trades are looked at once
        rows = trades(times, seed)
        return rows, rows, {"where": WHERE, "pairs": "once"}
    bands = [Term(name, name, -point.width, point.width) for name in "xy"]
    return uniform(times, seed), uniform(times, seed + 1), {"band": bands}


def measure_elastic(manifest, point):
    """Return what was measured at a point, as JSON-compatible values.

    The answer is compared with the reference join.

    Parameters
    ----------
    manifest : Manifest
        Of a bundle whose library is built.
    point : ElasticPoint
        What to measure.

    Raises
    ------
    FailureError
        If the answer is not that of the reference join.
    """
    rates, second = point.rates, cycles_of_second(point)
    left, right, matching = question_of(point, rates.times(point.tuples))
    query = Query(
        **matching, time="t", sorted=True, within=1_000 * rates.window, elastic=controller_of(point)
    )
    told = []
    epochs = HALF if point.controller == "half" else ()
    with open_device(f"sim:{manifest.path}") as device:
        join = Join(
            left, right, query, device, record=True, pace=second / 1_000,
            note_decision=told.append, epochs=epochs,
        )  # fmt: skip
        join.run()
    verdict = compare_pairs(join.measured.pairs, reference_pairs(left, right, query), ordered=True)
    if not verdict.agrees:
        raise FailureError(f"An elastic join gave another answer: {verdict.text}.")
    changes = [one for one in told if isinstance(one, CoreChange)]
    record = join.measured.elastic
    seen = [one for one in told if isinstance(one, CoreDecision)]
    highest = 2 * point.tuples / (rates.window * second)  # tuples per cycle
    return {
        "pairs": len(join.measured.pairs[0]),
        "cycles": join.measured.cycles,
        "core_cycles": CORES * join.measured.cycles if record is None else record.core_cycles,
        "saved": 0.0 if record is None else record.saved,
        "longest": join.measured.longest_wait,
        "longest_seconds": join.measured.longest_wait / second,
        "changes": len(changes),
        "cores": [[0.0, CORES], *([one.cycle / second, len(one.cores)] for one in changes)],
        "answered": [
            [one.cycle / second, 100 * one.seen.tuples / (one.seen.cycles * highest)]
            for one in seen
        ],
        "latency": [
            [one.cycle / second, one.seen.latency / second]
            for one in seen if one.seen.latency is not None
        ],
        "rate": [[begin, 100 * rate / HIGHEST] for begin, _, rate in rates.stretches],
    }  # fmt: skip
