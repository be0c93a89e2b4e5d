# SPDX-License-Identifier: Apache-2.0
"""What a tuple of an aggregate costs: of windows, of operators of one's own, and of matches."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.simulated import FOLDER, aggregated, built
from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from hdl.parameters import JoinParameters, KeyField
from hdl.windowed.description import OperatorDescription
from host.devices.simulated import SimulatedDevice
from host.devices.software import SoftwareDevice
from host.errors import DeviceError
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from host.pipeline import Pipeline
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, configuration
from host.query.ordering import Ordering
from host.query.queries import AggregateQuery
from host.reference.arrivals import Side
from host.reference.predicate import Bounds
from host.reference.window import CountWindow

from .registry import Result, figure

__all__ = [
    "PANE_TUPLES", "PRESET", "LeftRows", "Matches", "aggregate_run", "compare_matches",
    "compared_cycles", "expected_totals", "forwarded_cycles", "left_rows", "random_columns",
]  # fmt: skip

#: The accelerator, and tuples and number of panes of the run: each key has four tuples in a pane.
PRESET = "aggregate"
PANE_TUPLES, PANES = 1 << 16, 40
#: Most cycles of the run per tuple, beyond which something hangs.
MOST_CYCLES = 64


def expected_totals(times, keys, values, *, keys_count, panes):
    """Return the sums of all windows: by right boundary, one number for each key.

    Computed from running sums over time, unlike the accelerator, which moves pane by pane.
    """
    last = int(times[-1])
    cells = np.zeros((last + 1, keys_count), np.int64)
    np.add.at(cells, (times, keys), values)
    running = np.vstack([np.zeros((1, keys_count), np.int64), cells.cumsum(axis=0)])
    ends = np.arange(1, last + 1 + panes)
    return running[np.minimum(ends, last + 1)] - running[np.maximum(ends - panes, 0)]


def random_columns(parameters, *, pane_tuples, panes):
    """Return random keys and values, as many in each pane, sorted by time."""
    generator = np.random.default_rng(25)
    bits = next(field.bits for field in parameters.operator.fields if field.name == "value")
    return {
        "time": np.repeat(np.arange(panes), pane_tuples),
        "key": generator.integers(0, parameters.keys, panes * pane_tuples),
        "value": generator.integers(0, 1 << bits, panes * pane_tuples),
    }


def aggregate_run(parameters, *, pane_tuples, panes, report):
    """Run an accelerator on random tuples as fast as it takes them, and check every sum.

    Returns
    -------
    dict
        ``cycles_per_tuple`` from the first tuple of the second window's length on to the last
        tuple, ``tuples``, ``results``, and ``seconds`` of the simulation.
    """
    bundle = built(parameters, "aggregate", report)
    count, window = pane_tuples * panes, parameters.operator.panes
    rows = random_columns(parameters, pane_tuples=pane_tuples, panes=panes)
    times, keys, values = rows["time"], rows["key"], rows["value"]
    run = aggregated(
        bundle, times, {"key": keys, "value": values}, end=panes + window,
        room=(panes + window) * (parameters.keys + 1) + 1, most=MOST_CYCLES * count,
    )  # fmt: skip
    check_totals(run, expected_totals(
        times, keys, values, keys_count=parameters.keys, panes=window
    ))  # fmt: skip
    warm = window * pane_tuples  # from here on, a pane leaves for each one that comes
    cycles = int(run.accepted[-1] - run.accepted[warm])
    return {
        "cycles_per_tuple": cycles / (count - 1 - warm),
        "tuples": count,
        "results": len(run.values["key"]),
        "seconds": run.seconds,
    }


def check_totals(run, totals):
    """Raise :exc:`AssertionError` unless every window of every key has its sum, in order."""
    boundary, key, found = (run.values[name] for name in ("boundary", "key", "window.total"))
    cores, keys = run.codec.manifest.cores, run.codec.manifest.keys
    place = (boundary * cores + key % cores) * keys + key
    if not (np.diff(place) > 0).all():
        raise AssertionError("results are not sorted by boundary, core and key")
    if not (found == totals[boundary - 1, key]).all():
        raise AssertionError("a window has another sum than its tuples")
    if found.sum() != totals.sum():
        raise AssertionError("a window is missing")


@figure("aggregate.cycles_per_tuple", unit="cycles", goal="<= 1.05")
def cycles_per_tuple(report):
    """Cycles per tuple of a sum by key: 2^14 keys, a sliding window of 16 panes, one core.

    Random keys and values, 2^16 tuples in a pane, as fast as the accelerator takes them. Every pane
    ends a window with 2^14 results, which are taken at once. All sums are checked against running
    sums. Cycles are counted from tuple to tuple, once the first window is full.
    """
    run = aggregate_run(
        AGGREGATE_PRESETS[PRESET], pane_tuples=PANE_TUPLES, panes=PANES, report=report
    )
    rate = run["tuples"] / run["seconds"]
    return Result(
        run["cycles_per_tuple"],
        notes=(
            f"{run['results']} results of {run['tuples']} tuples",
            f"{rate / 1e6:.2f} M tuples/s simulated, from words to words",
        ),
        details=run,
    )


#: An operator of one's own with the keys, the sum and the windows of the preset beside it.
DESCRIBED = WindowedOperator(
    name="described",
    size=4,
    advance=1,
    fields=[Field("item", 4, signed=False), Field("price", 8, signed=False)],
    keys=[Key("item", when="price >= 0")],
    reductions=[Reduction("spent", "sum", "price", bits=32, signed=False)],
    outputs=[Output("twice", "spent * 2")],
    having="spent > 100",
)
BESIDE = "tiny-aggregate"


def compared_cycles(rows, folder, report):
    """Return the cycles of an operator of one's own, and of the built-in aggregate of its shape.

    Both are on simulated accelerators of two cores, and get the same rows from Arrow.

    Parameters
    ----------
    rows : int
        Tuples, 64 of them in a pane.
    folder : Path
        Where the bundles go.
    report : callable
        Told what is being built.
    """
    table = pa.table(
        {
            "timestamp": np.arange(rows) // 64,
            "item": np.random.default_rng(3).integers(0, 16, rows),
            "price": np.random.default_rng(4).integers(0, 256, rows),
        }
    )
    preset = AGGREGATE_PRESETS[BESIDE]
    circuit = OperatorDescription.from_dict(DESCRIBED.circuit())
    bundles = {"built-in": preset, "described": preset.with_(operator=circuit)}
    for name, parameters in bundles.items():
        built(parameters, name, report, folder=folder)
    cycles = []
    operate_tables(
        [table], OperatorQuery(DESCRIBED), f"sim:{folder / 'described'}",
        lambda work: cycles.append(work.cycles),
    )  # fmt: skip
    query = AggregateQuery(
        time="timestamp", window=4, advance=1, on="item", aggregates={"spent": "sum:price"}
    )
    started = []
    device = f"sim:{folder / 'built-in'}"
    Pipeline.of_table(table).aggregate(query, device=device, started=started.append).collect()
    return cycles[0], started[-1].work.device_work.cycles


@figure("operator.cycles_per_tuple", unit="x", goal="<= 1.05")
def described_cycles(report):
    """Cycles of a described operator by those of the built-in aggregate of its shape.

    A sum by a key of 4 bits over four panes, two cores, 64 tuples in a pane: as
    ``tiny-aggregate``, and as an operator with a condition, outputs and ``having``, from Arrow to
    Arrow.
    """
    own, beside = compared_cycles(1 << 16, FOLDER / "described", report)
    return Result(own / beside, notes=(f"{own} and {beside} cycles of {1 << 16} tuples",))


#: Cores of Operator 15, each of which forwards each tuple.
FORWARDERS = (1, 2, 4, 8, 16, 32)


def forwarded_cycles(cores, rows, folder, report):
    """Return the cycles in which ``cores`` cores forward each of so many tuples.

    Parameters
    ----------
    cores, rows : int
        Cores, with a key each; tuples of both inputs together.
    folder : Path
        Where the bundle goes.
    report : callable
        Told what is being built.
    """
    operator = WindowedOperator(
        name="forward", size=1, advance=1, fields=[Field("payload", 16)],
        right_fields=[Field("payload", 16)], keys=[Key(core) for core in range(cores)],
        key_names=["core"], instances="single",
    )  # fmt: skip
    circuit = OperatorDescription.from_dict(operator.circuit())
    parameters = AggregateParameters(operator=circuit, cores=cores, timestamp_bits=24)
    bundle = built(parameters, f"forward-{cores}", report, folder=folder)
    payloads = np.random.default_rng(5).integers(-99, 99, rows)
    times = np.arange(rows)
    tables = [
        pa.table({"timestamp": times[side::2], "payload": payloads[side::2]}) for side in range(2)
    ]
    cycles, query = [], OperatorQuery(operator)
    found = operate_tables(tables, query, f"sim:{bundle}", lambda work: cycles.append(work.cycles))
    if not found.equals(operate_tables(tables, query)):
        raise AssertionError("a tuple is missing, or there is one too many")
    return cycles[0]


@figure("operator.forward_cycles", unit="x", goal="<= 1.05")
def forward_cycles(report):
    """Cycles per tuple of STRETCH's Operator 15 on 16 cores, by those on one core.

    Q2 of STRETCH: an operator that keeps nothing, whose cores each forward every tuple. A tuple is
    a pane of its own, with a result of each core, one of which leaves in a cycle. Tuples of two
    inputs in turns, from Arrow to Arrow; results are compared with those of the software engine.
    """
    rows, folder = 1 << 13, FOLDER
    found = {cores: forwarded_cycles(cores, rows, folder, report) / rows for cores in FORWARDERS}
    notes = [f"{cores} cores: {cycles:.2f} cycles per tuple" for cores, cycles in found.items()]
    return Result(found[16] / found[1], notes=tuple(notes))


# Aggregates of the matches of a left row, which leave as one word.

#: The accelerator; without values, it is the same join that sends pairs.
SHAPE = JoinParameters.of(
    cores=4, sub_window=1024, keys=(KeyField(name="x", bits=32),), lanes=4, probes=8, value_bits=32
)
#: Most cycles of a run per input word, beyond which something hangs.
MOST_WORD_CYCLES = 1024


@dataclass(frozen=True)
class Matches:
    """A band join of left rows with a full window of right rows, one of either after the other.

    Parameters
    ----------
    window : int
        Right rows in the window.
    rows : int
        Left rows, and right rows that come meanwhile.
    matches : int
        Expected number of matches of a left row.
    """

    window: int
    rows: int
    matches: int

    #: Values within a band of ``matches`` expected matches, for a uniform key.
    WIDTH = 1001

    def words(self, codec):
        """Return the words that set the query and fill the window, and those of the run."""
        generator = np.random.default_rng(46)
        span = self.WIDTH * self.window // self.matches
        bound = self.WIDTH // 2
        setting = configuration(
            codec.manifest,
            {"x": Bounds(-bound, bound)},
            CountWindow(self.window),
            Ordering.none(),
            newest_of=Side.S,  # left rows are not kept for right ones to find them
        )
        sides = np.concatenate(
            [np.ones(self.window, np.uint8), np.tile(np.array([0, 1], np.uint8), self.rows)]
        )
        keys = {"x": generator.integers(0, span, len(sides))}
        half = 1 << 31
        values = generator.integers(-half, half, len(sides))
        has_values = "value" in codec.manifest.input_word.fields
        tuples = codec.pack_tuples(sides, keys, value=values if has_values else None)
        flush = codec.pack_control("FLUSH")
        first = np.concatenate([setting, tuples[: self.window], flush])
        return first, np.concatenate([tuples[self.window :], flush])


@dataclass(frozen=True)
class LeftRows:
    """Counts of a run, from the counters of the hardware.

    Parameters
    ----------
    words, results, cycles : float
        Result words, results beside stars and marks, and clock cycles, per left row.
    """

    words: float
    results: float
    cycles: float


def left_rows(parameters, workload, *, name, report):
    """Run a workload, check every result by the software device, and return counts per left row.

    Parameters
    ----------
    parameters : JoinParameters
        A join aggregate, or a join that sends pairs.
    workload : Matches
    name : str
        Name of the bundle's folder.
    report : callable
        Receives lines about the progress.
    """
    bundle = built(parameters, name, report)
    with SimulatedDevice(bundle) as device, SoftwareDevice(bundle) as model:
        first, run = workload.words(WordCodec(device.manifest))
        exchanged(device, first, MARKS + 1)
        exchanged(model, first, MARKS + 1)
        before = device.counters()
        found = exchanged(device, run, 1)
        after = device.counters()
        wanted = exchanged(model, run, 1)
    # Without stars, the order of pairs depends on when cores find them.
    if not parameters.is_aggregated:
        found, wanted = (words[np.lexsort(words.T)] for words in (found, wanted))
    if not np.array_equal(found, wanted):
        raise AssertionError(f"the results of {name} are not those of the reference join")
    counted = {counter: after[counter] - before[counter] for counter in after}
    rows = counted["tuples_r"]
    return LeftRows(
        counted["output_busy"] / rows, counted["results"] / rows, counted["cycles"] / rows
    )


def exchanged(device, words, marks):
    """Send words; return the results up to the mark that answers the last of them."""
    codec = WordCodec(device.manifest)
    room = np.zeros((1 << 16, device.manifest.result_word.columns), np.uint64)
    arrived, left = [], MOST_WORD_CYCLES * len(words)
    while marks:
        done = device.exchange(words, room, cycles=1 << 20)
        words, left = words[done.accepted :], left - done.cycles
        arrived.append(room[: done.produced].copy())
        marks -= int(codec.marks(arrived[-1]).sum())
        if left < 0:
            raise DeviceError(f"Device {device.uri!r} sent no mark; counters {device.counters()}")
    return np.concatenate(arrived)


def compare_matches(shape, workload, *, report):
    """Return the counts of a join aggregate, and those of the same join that sends pairs."""
    return (
        left_rows(shape, workload, name="join-aggregate", report=report),
        left_rows(shape.with_(value_bits=0), workload, name="join-of-pairs", report=report),
    )


@figure("join_aggregate.results_words", unit="words/left row", goal="<= 1.01")
def results_words(report):
    """Result words per left row of a join aggregate, with about 100 matches per row.

    Four cores of 1,024 tuples, four lanes, eight probes; a band over a 32-bit key, a full window of
    4,096 right rows, and a left and a right row by turns. No stars but that of the end, which
    counts. Every word is checked by the reference join. The same join that sends pairs keeps one
    left row, so that right rows find next to nothing.
    """
    workload = Matches(window=SHAPE.capacity, rows=4000, matches=100)
    values, pairs = compare_matches(SHAPE, workload, report=report)
    note = (
        f"{values.cycles:.1f} cycles per left row; the same join that sends pairs takes "
        f"{pairs.cycles:.1f}, with {pairs.results:.1f} pairs"
    )
    return Result(
        values.words,
        notes=(note,),
        details={
            "cycles_per_left_row": round(values.cycles, 3),
            "pairs_cycles_per_left_row": round(pairs.cycles, 3),
            "pairs_per_left_row": round(pairs.results, 3),
        },
    )
