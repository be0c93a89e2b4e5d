# SPDX-License-Identifier: Apache-2.0
"""Long runs of joins under many epochs, compared with the reference join pair by pair.

``python -m bench epochs`` also counts whether their input ever waits for an epoch.
"""

import csv
from dataclasses import dataclass
from itertools import product
from pathlib import Path
import shlex

import numpy as np
import pyarrow as pa

from hdl.parameters import JoinParameters, KeyField
from host.devices import open_device
from host.devices.simulated import SimulatedDevice
from host.query.ordering import Ordering
from host.query.queries import Query
from host.reference.arrivals import Arrivals
from host.reference.join import reference_join
from host.reference.predicate import EQUAL, DifferenceBand
from host.reference.window import CountWindow, TimeWindow
from host.session.join import Join

from .experiments.sweep import FOLDER, sweep

__all__ = [
    "COLUMNS", "ENGINES", "WINDOWS", "Compared", "RandomStream", "Stretch", "add_command",
    "compare", "random_epochs", "rows_of", "run", "stretches", "write",
]  # fmt: skip

FIELDS = (KeyField(name="x", bits=16),)
#: Accelerators. A window of 24 tuples fits one core, whatever epochs came before.
ENGINES = {
    "scan": JoinParameters.of(
        cores=4, sub_window=32, lanes=2, probes=4, keys=FIELDS, timestamp_bits=32, probe_bits=4
    ),
    "index": JoinParameters.of(
        engine="index", cores=3, sub_window=32, probes=4, keys=FIELDS, timestamp_bits=32,
        probe_bits=4, bucket_bits=4, comparator="equality",
    ),
}  # fmt: skip
WINDOWS = {"count-based": CountWindow(24), "time-based": TimeWindow(40)}


#: Different values of the compared field.
KEYS = 50


@dataclass(frozen=True)
class Compared:
    """What a join under epochs answered.

    Parameters
    ----------
    pairs : int
        Pairs of the reference.
    lost, repeated, wrong : int
        Pairs that the join lacks, that it has more than once, and that are none.
    epochs, superseded : int
        Epochs that took effect, and those that a later one replaced before they could.
    """

    pairs: int
    lost: int
    repeated: int
    wrong: int
    epochs: int
    superseded: int

    @property
    def bad(self):
        """Pairs that are lost, repeated or wrong."""
        return self.lost + self.repeated + self.wrong


def random_epochs(generator, places, cores, fewest):
    """Return epochs at some places of a stream, of random cores, but at least ``fewest``."""
    return [
        (place, generator.permutation(cores)[: generator.integers(fewest, cores + 1)].tolist())
        for place in places
    ]


class RandomStream:
    """Random tuples of two sides in the order of their times, and their join.

    Parameters
    ----------
    window : CountWindow or TimeWindow
        Window of either side. Times differ by 2 on the average.
    tuples : int
        Tuples of both sides.
    generator : numpy.random.Generator
        Source of everything that is random.
    """

    def __init__(self, window, *, tuples, generator):
        side = generator.integers(0, 2, tuples)
        keys = generator.integers(0, KEYS, tuples)
        times = np.cumsum(generator.integers(0, 5, tuples))
        order = np.lexsort((side, times))  # on a tie R comes first
        self.window = window
        self.side, self.keys, self.times = side[order], keys[order], times[order]

    def join(self, device, epochs):
        """Join the tuples on a device; return the join, which has run."""
        left, right = (
            pa.table({"t": self.times[self.side == n], "x": self.keys[self.side == n]})
            for n in (0, 1)
        )
        counted = isinstance(self.window, CountWindow)
        query = Query(
            time="t",
            on="x",
            rows=self.window.size if counted else None,
            within=None if counted else self.window.lifespan,
            ordering=Ordering.relaxed(8),
        )
        join = Join(left, right, query, device, record=True, epochs=epochs)
        for _ in join.batches():
            pass
        return join

    def compared(self, join):
        """Compare a join with the reference; return the :class:`Compared`."""
        arrivals = Arrivals(
            side=self.side.astype(np.uint8),
            keys={"x": self.keys},
            timestamp=self.times.astype(np.int64),
        )
        expected = reference_join(arrivals, DifferenceBand({"x": EQUAL}), self.window)
        both = (expected.rows(arrivals), join.measured.pairs)
        wanted, found = (np.sort(one * len(self.side) + other) for one, other in both)
        once = np.unique(found)
        return Compared(
            pairs=len(wanted),
            lost=len(np.setdiff1d(wanted, once, assume_unique=True)),
            repeated=len(found) - len(once),
            wrong=len(np.setdiff1d(once, wanted, assume_unique=True)),
            epochs=len(join.measured.epochs),
            superseded=len(join.measured.superseded),
        )


def compare(uri, window, *, tuples, epochs, seed, fewest=1):
    """Join two random tables under random epochs; return the :class:`Compared`.

    Parameters
    ----------
    uri : str
        Device with one key field and timestamps.
    window : CountWindow or TimeWindow
        Window of either side.
    tuples, epochs : int
        Tuples of both sides, and epochs at random places.
    seed : int
        Seed of everything that is random.
    fewest : int
        Fewest active cores of an epoch.
    """
    generator = np.random.default_rng(seed)
    stream = RandomStream(window, tuples=tuples, generator=generator)
    with open_device(uri) as device:
        places = np.sort(generator.integers(0, tuples, epochs)).tolist()
        given = random_epochs(generator, places, device.manifest.storage.cores, fewest)
        return stream.compared(stream.join(device, given))


#: Cycles out of 256 in which no word is offered, chosen at random. So a word comes in 4.6 cycles on
#: the average, which one active core can follow: the input waits for no work, and any wait that
#: epochs bring is seen.
WITHHELD = 200


@dataclass(frozen=True)
class Stretch:
    """A stretch that is simulated from reset on, and kept as a whole.

    Parameters
    ----------
    accelerator : str
        Name in :data:`ENGINES`.
    window : str
        Name in :data:`WINDOWS`.
    number : int
        Number of the stretch.
    tuples : int
        Tuples of both sides.
    distance : int
        Tuples from epoch to epoch.
    seed : int
        Seed of the run.
    """

    accelerator: str
    window: str
    number: int
    tuples: int
    distance: int
    seed: int

    store = "epochs.jsonl"

    @property
    def parameters(self):
        """Parameters of the accelerator."""
        return ENGINES[self.accelerator]

    def measure(self, manifest):
        """Simulate a stretch with its epochs, and without; return what was counted.

        Both runs have the same tuples, offered at random by the same seed. The hardware counts the
        cycles in which a word had to wait (``ingress_stalled``).

        Parameters
        ----------
        manifest : Manifest
            Of a bundle whose library is built.

        Returns
        -------
        dict
            JSON-compatible: ``pairs``, ``bad`` (pairs that are lost, repeated or wrong with epochs
            or without), ``epochs``, ``superseded``, and with and without epochs ``cycles`` and
            ``stalled``.
        """
        generator = np.random.default_rng([self.seed, self.number])
        stream = RandomStream(WINDOWS[self.window], tuples=self.tuples, generator=generator)
        places = range(self.distance, self.tuples, self.distance)
        given = random_epochs(generator, places, manifest.storage.cores, 1)
        found = {"bad": 0}
        for name, epochs in (("without", []), ("with", given)):
            with SimulatedDevice(manifest.path, seed=1 + self.number, stall_in=WITHHELD) as device:
                join = stream.join(device, epochs)
                counts = device.counters()
            compared = stream.compared(join)
            found["bad"] += compared.bad
            found |= {
                f"cycles_{name}": counts["cycles"],
                f"stalled_{name}": counts["ingress_stalled"],
            }
        return found | {
            "pairs": compared.pairs, "epochs": compared.epochs, "superseded": compared.superseded,
        }  # fmt: skip


def stretches(kinds, *, tuples, length, distance, seed):
    """Return the stretches of a run, of all kinds in turn.

    Parameters
    ----------
    kinds : sequence of (str, str)
        Accelerators and windows.
    tuples, length, distance : int
        Tuples of the run at least, of a stretch, and from epoch to epoch.
    seed : int

    Raises
    ------
    ValueError
        If a stretch has no epoch, or the run no tuple.
    """
    if tuples < 1:
        raise ValueError(f"Option --tuples must be at least 1, not {tuples}")
    if not 1 <= distance < length:
        raise ValueError(
            f"Option --distance must be 1 to {length - 1}, or no stretch of {length} tuples has an "
            f"epoch, not {distance}"
        )
    count = -(-tuples // length)
    return [
        Stretch(*kinds[number % len(kinds)], number, length, distance, seed)
        for number in range(count)
    ]


#: Columns of the table, which are summed over the stretches of a kind.
COLUMNS = (
    "tuples", "epochs", "superseded", "pairs", "bad",
    "cycles_with", "cycles_without", "stalled_with", "stalled_without",
)  # fmt: skip


def rows_of(found):
    """Return a row for each accelerator and window, and one for all: what was counted, summed."""
    rows = {}
    for stretch, counts in found.items():
        for kind in ((stretch.accelerator, stretch.window), ("all", "all")):
            row = rows.setdefault(kind, dict.fromkeys(("stretches", *COLUMNS), 0))
            row["stretches"] += 1
            for name in COLUMNS:
                row[name] += counts.get(name, stretch.tuples)
    return dict(sorted(rows.items(), key=lambda row: row[0][0] == "all"))


def write(rows, path, command):
    """Write the rows as a CSV file, below the command and the conditions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# {command}\n# A word comes in {256 / (256 - WITHHELD):.2g} cycles.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["accelerator", "window", "stretches", *COLUMNS])
        for kind, row in rows.items():
            writer.writerow([*kind, *row.values()])


def run(options, report):
    """Measure the stretches that are not known yet; return 1 if a pair is bad or an epoch stalls.

    An epoch stalls if the input of any stretch waits longer with epochs than without.
    """
    chosen = stretches(
        list(product(ENGINES, WINDOWS)), tuples=options.tuples, length=options.stretch,
        distance=options.distance, seed=options.seed,
    )  # fmt: skip
    found = sweep(
        chosen, report, folder=FOLDER / "epochs",
        advance=lambda done, of: report(f"epochs: {done} of {of} stretches"),
    )  # fmt: skip
    rows = rows_of(found)
    write(rows, Path(options.output), shlex.join(["python", "-m", "bench", *options.arguments]))
    total = rows["all", "all"]
    print(
        f"{total['tuples']:,} tuples, {total['epochs']:,} epochs: the input waited for "
        f"{total['stalled_with']:,} cycles with epochs and {total['stalled_without']:,} without; "
        f"{total['pairs']:,} pairs, {total['bad']:,} bad"
    )
    waits = any(one["stalled_with"] > one["stalled_without"] for one in found.values())
    return int(waits or total["bad"] > 0)


def add_command(commands, report):
    """Add ``epochs`` to the commands of ``python -m bench``; ``report`` receives its progress."""
    command = commands.add_parser(
        "epochs", help="run joins with an epoch every so many tuples, and count stalls",
        description="Run joins on simulated accelerators with an epoch every so many tuples, count "
        "the cycles in which their input waits, and compare every pair with the reference join. "
        f"A stretch that was simulated before is not simulated again ({FOLDER}).",
        example="--tuples 1000000",
    )  # fmt: skip
    command.add_argument(
        "--tuples", type=int, default=10_000_000, metavar="N", help="default: 10,000,000"
    )
    command.add_argument(
        "--stretch", type=int, default=1_250_000, metavar="N",
        help="tuples that are simulated from reset on, and kept; default: 1,250,000",
    )  # fmt: skip
    command.add_argument(
        "--distance", type=int, default=1_000, metavar="N",
        help="tuples from epoch to epoch; default: 1,000",
    )  # fmt: skip
    command.add_argument("--seed", type=int, default=1, metavar="S", help="default: 1")
    command.add_argument(
        "--output", default=str(FOLDER / "epochs.csv"), metavar="FILE",
        help=f"default: {FOLDER / 'epochs.csv'}",
    )  # fmt: skip
    command.set_defaults(run=lambda options: run(options, report))
