# SPDX-License-Identifier: Apache-2.0
"""The cost model beside the hardware counters: accelerators, loads, and a row for each of them."""

from contextlib import closing
import csv
from dataclasses import astuple, dataclass, fields, replace
from functools import cache
import math
from pathlib import Path

import numpy as np

from bench.simulated import StampedRun, Traffic, built
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from host.errors import ManifestError
from host.protocol.configuration import configuration
from host.protocol.cost_model import IDLE, Circuit, Workload, bottleneck, cycles_per_tuple
from host.protocol.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.verilated.library import build_library

from .latency_model import processing_latency, visiting_latency
from .registry import Result, figure

__all__ = [
    "ACCELERATORS", "RECORD", "Condition", "ModelRun", "Row", "read", "sweep", "table", "worst",
]  # fmt: skip

#: Tuples that fill an accelerator before anything is counted, and 8 for each probe of a group.
WARM = 160
#: Cycles of one exchange while nothing is counted.
CHUNK = 1 << 14


@dataclass(frozen=True)
class Condition:
    """What an accelerator is measured under.

    Parameters
    ----------
    window : int
        Tuples of each side, all of which are there from the first counted tuple on.
    period : int
        Probes from star to star.
    burst : int
        Tuples of a side in a row.
    interval : int or None
        Cycles from one tuple to the next; zero as fast as the accelerator takes them; None so
        slowly that the accelerator is idle when a tuple comes.
    values : int
        How many values a key has, all of them equally often.
    """

    window: int
    period: int = 1
    burst: int = 1
    interval: int | None = 0
    values: int = 1 << 14


@dataclass(frozen=True)
class Measured:
    """What was counted of so many tuples of both sides.

    Parameters
    ----------
    tuples, cycles : int
        Tuples accepted, and clock cycles, by the hardware counters.
    results, entries : int
        Pairs, and rows or entries that regions read, likewise.
    processing, visiting : float or None
        Mean cycles from the acceptance of a tuple to its star, and to a pair of it.
    """

    tuples: int
    cycles: int
    results: int
    entries: int
    processing: float | None
    visiting: float | None


def is_of(bundle, parameters):
    """Whether there is a bundle of these parameters; to write a large one takes a minute."""
    try:
        return JoinParameters.from_dict(Manifest.load(bundle).parameters) == parameters
    except (ManifestError, ValueError):
        return False


class ModelRun(StampedRun):
    """A simulated accelerator whose cycles are counted.

    Parameters
    ----------
    parameters : JoinParameters
        With comparator ``"band"`` or ``"equality"``; keys match that are equal.
    folder : Path
        Where its bundle goes.
    report : callable
        Receives lines about the progress.
    """

    def __init__(self, parameters, folder, report):
        if is_of(folder, parameters):
            build_library(folder, report=report)
        else:
            built(parameters, folder.name, report, folder=folder.parent)
        super().__init__(folder)

    def close(self):
        """Let go of the device."""
        self.device.close()

    def measure(self, condition, tuples):
        """Return what tuples take once the windows are full.

        Parameters
        ----------
        condition : Condition
            The windows are filled anew.
        tuples : int
            Of both sides together, at the least.
        """
        self.generator, self.sent = np.random.default_rng(1), 0
        names = [key.name for key in self.manifest.keys]
        words = configuration(
            self.manifest, dict.fromkeys(names, Bounds(0, 0)), CountWindow(condition.window),
            Ordering(condition.period),
        )  # fmt: skip
        self.send(words, marks=2, cycles=CHUNK)
        fill = self.words(condition, 2 * condition.window)
        self.send(np.concatenate([fill, self.codec.pack_control("FLUSH")]), marks=1, cycles=CHUNK)
        first = self.sent
        lead = 0 if condition.interval is None else WARM + 8 * self.manifest.probes
        words = self.words(condition, lead + tuples)
        self.traffic = Traffic()
        if condition.interval == 0:
            counts = self.saturated(words, lead)
        else:
            counts = self.spaced(condition, words)
        sides = np.arange(first, self.sent) // condition.burst % 2
        return Measured(
            counts["tuples_r"] + counts["tuples_s"],
            counts["cycles"],
            counts["results"],
            counts["region_busy"],
            *self.latencies(condition, sides, lead),
        )

    def words(self, condition, count):
        """Return the words of the next tuples: whole periods of both sides, ``count`` at least."""
        whole = 2 * int(np.lcm(condition.period, condition.burst))
        count = -(-count // whole) * whole
        sides = np.arange(self.sent, self.sent + count) // condition.burst % 2
        keys = {
            key.name: self.generator.integers(0, condition.values, count)
            for key in self.manifest.keys
        }
        self.sent += count
        return self.codec.pack_tuples(sides, keys)

    def saturated(self, words, lead):
        """Send words as fast as they are taken; return what was counted while there were some.

        The first ``lead`` tuples fill the accelerator; others keep it busy to the end.
        """
        total, counts = len(words), []
        lead //= self.manifest.tuples_per_word
        for bound in (lead, total - min(lead, (total - lead) // 4)):
            while total - len(words) < bound:
                words = words[self.exchange(words, 64) :]
            counts.append(self.device.counters())
        self.finish(words)
        return {name: counts[1][name] - counts[0][name] for name in counts[0]}

    def spaced(self, condition, words):
        """Send a word every ``interval`` cycles, or whenever the accelerator is idle."""
        before = self.device.counters()
        for n, word in enumerate(words):
            waiting = word[np.newaxis]
            if condition.interval is None:
                while self.traffic.stars <= n or len(waiting):
                    waiting = waiting[self.exchange(waiting, 64) :]
            else:
                end = self.device.cycle + condition.interval
                while len(waiting) or self.device.cycle < end:
                    left = max(1, end - self.device.cycle)
                    waiting = waiting[self.exchange(waiting, left) :]
        after = self.device.counters()
        self.finish(words[:0])
        return {name: after[name] - before[name] for name in before}

    def finish(self, words):
        """Send the last words, and wait for all results."""
        words = np.concatenate([words, self.codec.pack_control("FLUSH")])
        while not self.traffic.marks:
            words = words[self.exchange(words, CHUNK) :]

    def latencies(self, condition, sides, lead):
        """Return the mean processing and visiting latency of the tuples after ``lead`` of them."""
        accepted = np.concatenate(self.traffic.accepted)
        arrived = [accepted[sides == own] for own in range(2)]
        visiting, processing = (
            np.concatenate([wait[number >= lead // 2] for number, _, wait in both])
            for both in zip(*self.waits(arrived, condition.period), strict=True)
        )
        return float(processing.mean()), float(visiting.mean()) if len(visiting) else None


X16 = (KeyField(name="x", bits=16),)
X32 = (KeyField(name="x", bits=32),)
#: Below so many pairs, a mean visiting latency says little.
LEAST_PAIRS = 60


def scan(cores, fan_out, fan_in, lanes, probes, **more):
    """Return a scan of sub-windows of 256 tuples."""
    return JoinParameters.of(
        cores=cores, fan_out=fan_out, fan_in=fan_in, lanes=lanes, probes=probes, sub_window=256,
        **{"keys": X16, **more},
    )  # fmt: skip


def index(cores, **more):
    """Return an index of groups of four."""
    return JoinParameters.of(
        cores=cores, probes=4, engine="index", probe_bits=10, **{"keys": X32, **more}
    )


#: What is swept, by name. Number, fan-out and fan-in of the cores stand first in a name.
ACCELERATORS = {
    "1": scan(1, 2, 2, 1, 1),
    "2 b2 c2, 2 lanes": scan(2, 2, 2, 2, 4),
    "3 b2 c2, timestamps": scan(3, 2, 2, 1, 8, timestamp_bits=16),
    "4 b4 c4, 4 lanes": scan(4, 4, 4, 4, 8),
    "4 b4 c4, 4 lanes, digests": scan(
        4, 4, 4, 4, 8, comparator="equality", digest_bits=12, keys=X32
    ),
    "8 b2 c2": scan(8, 2, 2, 1, 4),
    "8 b8 c8": scan(8, 8, 8, 1, 1),
    "16 b4 c2": scan(16, 4, 2, 1, 4),
    "64 b8 c4": scan(64, 8, 4, 1, 1),
    "1, index, two in a word": index(
        1, fan_out=2, fan_in=2, comparator="equality", tuples_per_word=2, sub_window=1024
    ),
    "4 b4 c4, index of a band": index(4, keys=X16),
    "16 b4 c4, index": index(16, comparator="equality"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One quantity of one accelerator under one condition.

    Parameters
    ----------
    accelerator : str
        Its name in :data:`ACCELERATORS`.
    engine, load : str
        ``idle``, ``paced``, ``saturated``, ``bursts`` or ``crowded``: many results.
    window, period, burst, values : int
        As in :class:`Condition`.
    interval : int
        Likewise; -1 if idle.
    matches, reads : float
        Pairs, and rows or entries read, for each tuple: counted.
    quantity : str
        ``cycles per tuple``, ``processing`` or ``visiting``.
    measured, model : float
        In cycles.
    limit : str
        What limits the throughput, by the model.
    """

    accelerator: str
    engine: str
    load: str
    window: int
    period: int
    burst: int
    interval: int
    values: int
    matches: float
    reads: float
    quantity: str
    measured: float
    model: float = math.nan
    limit: str = ""

    @property
    def error(self):
        """Of the model, as a part of what was measured."""
        return self.model / self.measured - 1


def conditions(parameters):
    """Yield the name of a load, its condition, and how many tuples to count."""
    full = parameters.capacity * 15 // 16
    probes = parameters.engine.probes
    # To read the counters takes 30 cycles, in which no word comes: they must not matter.
    columns = parameters.cores * parameters.engine.lanes
    is_scan = parameters.engine.kind != "index"  # the model has other terms for an index
    many = 200 + 50 * probes
    if not is_scan or full // 4 // columns < 3 * probes:
        many = 8_000
    for window in (full, full // 4):
        yield "idle", Condition(window, interval=None, values=2 * window), 400
        for period in sorted({1, probes}):
            yield "saturated", Condition(window, period, values=1 << 15), many
    yield "saturated", Condition(full, 2 * probes, values=1 << 15), many
    busy = full / (2 * parameters.cores * parameters.engine.lanes * probes)
    interval = round(1.5 * max(4, busy)) if is_scan else 6
    yield "paced", Condition(full, probes, interval=interval, values=full), 1000
    if is_scan:
        burst = Condition(full, probes, burst=64, values=1 << 15)
        yield "bursts", burst, 64 * (10 if parameters.cores <= 16 else 4)
        # Sixty-four cores with so many results take minutes to simulate.
        for pairs in (8, 24) if parameters.cores <= 16 else ():
            values = max(2, full * probes // (parameters.cores * pairs))
            yield "crowded", Condition(full, probes, values=values), many
    else:
        yield "saturated", Condition(full, 1 << 10, values=full), many
        yield "crowded", Condition(full, 1 << 10, values=full // 5), many
        yield "crowded", Condition(full, probes, values=full), many


def held(run, name, load, condition, tuples):
    """Measure, and return the rows of a condition with what the model says beside."""
    found = run.measure(condition, tuples)
    measured = {}
    # While results are many, a latency is a matter of what waits where.
    if load != "crowded":
        measured["processing"] = found.processing
        if found.visiting is not None and found.results >= LEAST_PAIRS:
            measured["visiting"] = found.visiting
    if condition.interval == 0:
        measured["cycles per tuple"] = found.cycles / found.tuples
    rows = [
        Row(
            name, run.manifest.engine, load, condition.window, condition.period, condition.burst,
            -1 if condition.interval is None else condition.interval, condition.values,
            round(found.results / found.tuples, 4), round(found.entries / found.tuples, 4),
            quantity, round(cycles, 4),
        )
        for quantity, cycles in measured.items()
    ]  # fmt: skip
    return modelled(rows)


#: What the model says of each quantity.
MODEL = {
    "processing": processing_latency,
    "visiting": visiting_latency,
    "cycles per tuple": cycles_per_tuple,
}


@cache
def circuit_of(name):
    """Return the terms of an accelerator, by its name; nothing is generated."""
    return Circuit.of(Manifest.from_dict(describe(ACCELERATORS[name], "", verilog_file="")))


def modelled(rows):
    """Return rows with what the model says now, without those of which it says nothing."""
    found = []
    for row in rows:
        circuit = circuit_of(row.accelerator)
        load = Workload(
            windows=(row.window, row.window),
            interval=IDLE if row.interval < 0 else row.interval / circuit.per_word,
            burst=row.burst,
            period=row.period,
            matches=row.matches,
            entries=row.reads,
        )
        cycles = MODEL[row.quantity](circuit, load)
        if cycles is not None:
            found.append(replace(row, model=round(cycles, 4), limit=bottleneck(circuit, load)))
    return found


def sweep(names, path, report):
    """Measure accelerators, and write a row for each quantity to a CSV file.

    Rows that the file has already are kept, so a sweep that was interrupted goes on; what the
    model says of them is worked out again.

    Returns
    -------
    list of Row
        All rows of the file.
    """
    rows = read(path)
    done = {(row.accelerator, row.load, row.window, row.period, row.values) for row in rows}
    for number, name in enumerate(names):
        parameters = ACCELERATORS[name]
        wanted = [
            (load, condition, tuples)
            for load, condition, tuples in conditions(parameters)
            if (name, load, condition.window, condition.period, condition.values) not in done
        ]
        if not wanted:
            continue
        report(f"model: {name} ({number + 1} of {len(names)}), {len(wanted)} loads")
        folder = Path("build") / "model" / name.replace(", ", "-").replace(" ", "-")
        with closing(ModelRun(parameters, folder, report)) as run:
            for load, condition, tuples in wanted:
                more = held(run, name, load, condition, tuples)
                for row in more:
                    report(
                        f"model: {name}: {load}, window {row.window}, a star per {row.period}: "
                        f"{row.quantity} {row.measured:.2f}, model {row.model:.2f} "
                        f"({row.error:+.1%})"
                    )
                rows += more
                write(path, rows)
    write(path, rows)
    return rows


def read(path):
    """Return the rows of a CSV file; none if there is no such file."""
    if not path.exists():
        return []
    kinds = [field.type for field in fields(Row)]
    with path.open(newline="", encoding="utf-8") as file:
        _, *lines = csv.reader(file)
    return modelled(
        Row(*(kind(text) for kind, text in zip(kinds, line[: len(kinds)], strict=True)))
        for line in lines
    )


def write(path, rows):
    """Write rows to a CSV file, with the error of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(field.name for field in fields(Row)), "error"])
        writer.writerows([*astuple(row), f"{row.error:.4f}"] for row in rows)


def worst(rows, *, crowded=False):
    """Return the largest error among rows, of those with many results or of all others."""
    errors = [abs(row.error) for row in rows if (row.load == "crowded") == crowded]
    return max(errors, default=math.nan)


def table(rows):
    """Return a table of the largest errors in Markdown: accelerators by loads and quantities."""
    columns = [
        ("idle", "processing"), ("idle", "visiting"), ("paced", "processing"),
        ("saturated", "processing"), ("saturated", "cycles per tuple"),
        ("bursts", "cycles per tuple"), ("crowded", "cycles per tuple"),
    ]  # fmt: skip
    lines = [
        "| cores | " + " | ".join(f"{load}: {quantity}" for load, quantity in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for name in dict.fromkeys(row.accelerator for row in rows):
        cells = []
        for column in columns:
            errors = [
                row.error for row in rows
                if row.accelerator == name and (row.load, row.quantity) == column
            ]  # fmt: skip
            cells.append(f"{100 * max(errors, key=abs):+.1f}" if errors else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


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
