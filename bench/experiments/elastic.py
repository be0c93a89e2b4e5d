# SPDX-License-Identifier: Apache-2.0
"""Elastic joins under loads that rise and fall (STRETCH's Q5 and Q6): cores used, and latencies."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host import EnergyController, PredictiveController, ThresholdController, open_device
from host.errors import FailureError
from host.operators.verification import compare_pairs, reference_pairs
from host.query.queries import Query, Term
from host.session.join import Join
from host.session.records import CoreChange, CoreDecision, corners

from .joins import ACCELERATORS, HEDGE, HEDGE_BITS

__all__ = [
    "COMPANIES", "CONTROLLERS", "CORES", "FULL", "HIGHEST", "LOADS", "ElasticPlot", "ElasticPoint",
    "Rates", "controller_of", "cycles_of_second", "elastic_plots", "market", "phases", "trades",
]  # fmt: skip

#: Highest rate of either load, in the tuples per second of the paper.
HIGHEST = 8_000


@dataclass(frozen=True)
class Rates:
    """A rate for each stretch of time.

    Parameters
    ----------
    stretches : tuple of (int, int, int)
        Begin and end in seconds, and the tuples per second.
    window : int
        Seconds that a tuple stays in the window.
    """

    stretches: tuple[tuple[int, int, int], ...]
    window: int

    @property
    def seconds(self):
        """End of the last stretch."""
        return self.stretches[-1][1]

    def at(self, second):
        """Return the rate in a second."""
        return next(rate for begin, end, rate in self.stretches if begin <= second < end)

    def times(self, tuples):
        """Return the times of one side's tuples, in milliseconds.

        Parameters
        ----------
        tuples : int
            Tuples of a side in the window at the highest rate.
        """
        found = []
        for begin, end, rate in self.stretches:
            if rate:
                distance = 1_000 * self.window * HIGHEST / (tuples * rate)
                found.append(np.arange(1_000 * begin, 1_000 * end, distance))
        return np.concatenate(found).astype(np.int64)


def phases(seconds=1_200, seed=0):
    """Return the phases of Q5: 100 to 300 s each, rates of 500 to 8,000, a window of 60 s."""
    generator, begin, found = np.random.default_rng(seed), 0, []
    while begin < seconds:
        end = begin + int(generator.integers(100, 301))
        found.append((begin, min(end, seconds), int(generator.integers(500, HIGHEST + 1))))
        begin = end
    return Rates(tuple(found), 60)


def step(seconds, before, after):
    """Return a load with one step, from and to parts of the work of half of the cores.

    The work grows with the square of the rate, and at the highest one takes 3/4 of all cores.
    """
    at = 150 * seconds // 300
    shares = {(0, at): before, (at, seconds): after}
    return Rates(
        tuple((*ends, round(HIGHEST * (share / 1.5) ** 0.5)) for ends, share in shares.items()), 60
    )


def provisioning(seconds=300, seed=0):
    """Return the first load of STRETCH's Figure 10: half of the cores at 70 %, then 120 %."""
    del seed
    return step(seconds, 0.7, 1.2)


def decommissioning(seconds=300, seed=0):
    """Return the second load of STRETCH's Figure 10: half of the cores at 70 %, then 30 %."""
    del seed
    return step(seconds, 0.7, 0.3)


def market(seconds=1_200, seed=0):
    """Return a load in the shape of Q6: low most of the time, with abrupt and short peaks.

    The trades of the paper are not public. A stretch takes 1 to 20 seconds, and its rate is
    distributed like the exponential of a normal variable: the median is 490, the most 7,600. The
    window is half a minute.
    """
    generator, begin, found = np.random.default_rng(seed), 0, []
    while begin < seconds:
        end = begin + int(generator.integers(1, 21))
        rate = min(7_600, int(generator.lognormal(6.2, 1.2)))
        found.append((begin, min(end, seconds), rate))
        begin = end
    return Rates(tuple(found), 30)


COMPANIES = 50
#: A size is in units of 1e-6, so a price is 1 % away from its average on average.
DEVIATION = 10_000


def trades(times, seed):
    """Return trades of companies whose prices are normal around their averages: STRETCH's Q6.

    A trade's normalized distance is ND = (price - average) / average, and trades of two companies
    match if ``-1.05 <= ND_R / ND_L <= -1 / 1.05``, whose prices have moved as far, in opposite
    directions. Rows hold the distance as its sign and its size, so the ratio is compared without a
    division, exactly (:data:`bench.experiments.joins.HEDGE`).

    Parameters
    ----------
    times : array of int64
        When they come.
    seed : int
        Of the random numbers.

    Returns
    -------
    pa.Table
        ``t``; ``rises``, whether the price is above its average, as a number; ``size``, how far
        away it is in units of 1e-6, at least 1; ``company``.
    """
    generator = np.random.default_rng(seed)
    distance = np.rint(generator.normal(0, DEVIATION, len(times))).astype(np.int64)
    size = np.clip(np.abs(distance), 1, (1 << HEDGE_BITS["size"]) - 1)
    company = generator.integers(0, COMPANIES, len(times))
    rises = (distance > 0).astype(np.int64)
    return pa.table({"t": times, "rises": rises, "size": size, "company": company})


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
        Name in :data:`bench.experiments.joins.ACCELERATORS`.
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

    store = "elastic.jsonl"

    @property
    def rates(self):
        """The rates over time."""
        return LOADS[self.load](self.seconds, self.seed)

    @property
    def parameters(self):
        """Parameters of the accelerator."""
        return ACCELERATORS[self.accelerator]

    def measure(self, manifest):
        """Return what was measured, as JSON-compatible values.

        The answer is compared with the reference join.

        Parameters
        ----------
        manifest : Manifest
            Of a bundle whose library is built.

        Raises
        ------
        FailureError
            If the answer is not that of the reference join.
        """
        rates, second = self.rates, cycles_of_second(self)
        left, right, matching = question_of(self, rates.times(self.tuples))
        query = Query(
            **matching,
            time="t",
            sorted=True,
            within=1_000 * rates.window,
            elastic=controller_of(self),
        )
        told = []
        epochs = HALF if self.controller == "half" else ()
        with open_device(f"sim:{manifest.path}") as device:
            join = Join(
                left, right, query, device, record=True, pace=second / 1_000,
                note_decision=told.append, epochs=epochs,
            )  # fmt: skip
            join.run()
        verdict = compare_pairs(
            join.measured.pairs, reference_pairs(left, right, query), ordered=True
        )
        if not verdict.agrees:
            raise FailureError(f"An elastic join gave another answer: {verdict.text}.")
        changes = [one for one in told if isinstance(one, CoreChange)]
        record = join.measured.elastic
        seen = [one for one in told if isinstance(one, CoreDecision)]
        highest = 2 * self.tuples / (rates.window * second)  # tuples per cycle
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
        return rows, rows, {"where": HEDGE, "pairs": "once"}
    bands = [Term(name, name, -point.width, point.width) for name in "xy"]
    return uniform(times, seed), uniform(times, seed + 1), {"band": bands}


@dataclass(frozen=True)
class ElasticPlot:
    """A figure over time; drawn like a :class:`~bench.experiments.catalogue.Plot`.

    Parameters
    ----------
    name, title, conditions : str
        Name and texts.
    points : tuple of ElasticPoint
        One for each controller.
    span : tuple of int, optional
        First and last second that are drawn.
    shows : tuple of str
        What is drawn besides of the threshold controller: its ``"answered"`` tuples.
    """

    name: str
    title: str
    conditions: str
    points: tuple[ElasticPoint, ...]
    span: tuple[int, int] | None = None
    shows: tuple[str, ...] = ()

    x_label = "seconds"
    y_label = "cores"
    log_x = log_y = False

    def lines(self, found):
        """Return label and (second, cores) of each series; the rate is in parts of all cores."""
        rate = found[self.points[0]]["rate"]
        end = self.points[0].seconds
        scaled = [[second, share * CORES / 100] for second, share in rate]
        series = [("rate (8,000 = 8)", scaled)]
        series += [
            (point.controller, found[point]["cores"])
            for point in self.points if point.controller not in ("fixed", "half")
        ]  # fmt: skip
        lines = [(label, corners(points, end)) for label, points in series]
        for point in self.points:
            if point.controller == "threshold" and "answered" in self.shows:
                shares = found[point]["answered"]
                lines.append(
                    ("answered (8,000 = 8)", [(at, share * CORES / 100) for at, share in shares])
                )
        if self.span is None:
            return lines
        return [(label, within(line, *self.span)) for label, line in lines]

    def table(self, found):
        """Yield the rows of the CSV file: a row for each controller, and all lines."""
        counts = (
            "saved", "longest_seconds", "longest", "changes", "cycles", "core_cycles", "pairs",
        )  # fmt: skip
        yield ["controller", *counts, "mean_latency_seconds"]
        for point in self.points:
            seen = [latency for _, latency in found[point]["latency"]]
            row = [found[point][name] for name in counts]
            row.append(sum(seen) / len(seen) if seen else "")
            yield [point.controller, *(f"{v:.4g}" if isinstance(v, float) else v for v in row)]
        yield []
        yield ["series", "second", "value"]
        for label, line in self.lines(found):
            yield from ([label, f"{x:.6g}", f"{y:.6g}"] for x, y in line)


def within(line, begin, end):
    """Return the part of a line of steps that lies between two seconds."""
    before = [y for x, y in line if x <= begin]
    inside = [(x, y) for x, y in line if begin < x < end]
    first = [(begin, before[-1])] if before else []
    last = inside[-1:] or first
    return [*first, *inside, *((end, y) for _, y in last)]


#: The jump of Q5's phases that STRETCH's Figure 12 would show, and the window after it.
JUMP = (740, 820)


def elastic_plots(*, quick=False):
    """Return the figures by name; the quick ones have smaller windows and take a quarter."""
    size = {"tuples": 256, "seconds": 300} if quick else {}
    titles = {
        "q5": "Phases of rates (Q5 of STRETCH): rate and active cores",
        "market": "A load in the shape of a market's (Q6 of STRETCH): rate and active cores",
        "hedge": "Hedges in a load of that shape (Q6 of STRETCH): rate and active cores",
    }
    conditions = (
        f"{CORES} cores, time-based window, one probe per pass; all cores have a load of 75 % at "
        f"8,000 tuples per second."
    )
    steps = {
        "provisioning": "One step up (Figure 10 of STRETCH): rate, active cores, answers",
        "decommissioning": "One step down (Figure 10 of STRETCH): rate, active cores, answers",
    }
    more = {
        f"elastic-{load}": ElasticPlot(
            f"elastic-{load}", title, conditions,
            tuple(
                ElasticPoint(load, controller, **{**size, "seconds": 300})
                for controller in ("half", "threshold")
            ),
            shows=("answered",),
        )
        for load, title in steps.items()
    } | {
        "elastic-jump": ElasticPlot(
            "elastic-jump", "The jump at second 748 of Q5 (Figure 12 of STRETCH)", conditions,
            tuple(
                ElasticPoint("q5", controller)
                for controller in ("fixed", "threshold", "predictive", "energy")
            ),
            JUMP,
        )
    }  # fmt: skip
    return ({} if quick else more) | {
        f"elastic-{load}": ElasticPlot(
            f"elastic-{load}", title, conditions,
            tuple(
                ElasticPoint(load, controller, accelerator=accelerator_of(load), **size)
                for controller in CONTROLLERS
            ),
        )
        for load, title in titles.items()
    }  # fmt: skip
