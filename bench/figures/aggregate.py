# SPDX-License-Identifier: Apache-2.0
"""What a tuple of a windowed aggregate costs, with all work of its windows."""

from contextlib import closing
from pathlib import Path
import time

import numpy as np
import pyarrow as pa

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from hdl.bundle import write_bundle
from hdl.windowed.description import OperatorDescription
from host.devices import Stamps
from host.devices.simulated import SimulatedAggregate
from host.errors import DeviceError
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from host.pipeline import Pipeline
from host.protocol.codecs import AggregateCodec
from host.query.queries import AggregateQuery
from sim.verilated.library import build_library

from .registry import Result, figure

__all__ = [
    "PANE_TUPLES", "PRESET", "aggregate_bundle", "aggregate_run", "compared_cycles",
    "expected_totals", "forwarded_cycles", "random_columns",
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


def aggregate_bundle(parameters, report):
    """Return the folder of a bundle with its simulator library, which is built if necessary."""
    bundle = Path("build") / "figures" / "aggregate"
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
    return bundle


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
    bundle = aggregate_bundle(parameters, report)
    count, window = pane_tuples * panes, parameters.operator.panes
    rows = random_columns(parameters, pane_tuples=pane_tuples, panes=panes)
    times, keys, values = rows["time"], rows["key"], rows["value"]
    with closing(SimulatedAggregate(bundle)) as device:
        codec = AggregateCodec(device.manifest)
        words = np.concatenate(
            [
                codec.pack_tuples(times, {"key": keys, "value": values}),
                codec.pack_control("WATERMARK", panes + window),
                codec.pack_control("FLUSH"),
            ]
        )
        room = (panes + window) * (parameters.keys + 1) + 1
        results = np.zeros((room, device.manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        started = time.monotonic()
        done = device.exchange(words, results, cycles=MOST_CYCLES * count, stamps=stamps)
        seconds = time.monotonic() - started
    found = codec.unpack(results[: done.produced])
    if done.accepted < len(words) or found.kind[-1] != device.manifest.result_kinds["MARK"]:
        raise DeviceError(
            f"The simulated aggregate took {done.accepted} of {len(words)} words in {done.cycles} "
            f"cycles, and sent no mark"
        )
    codec.check(results[: done.produced])
    check_totals(codec, found, expected_totals(
        times, keys, values, keys_count=parameters.keys, panes=window
    ))  # fmt: skip
    accepted = stamps.accepted[:count].astype(np.int64)
    warm = window * pane_tuples  # from here on, a pane leaves for each one that comes
    cycles = int(accepted[-1] - accepted[warm])
    return {
        "cycles_per_tuple": cycles / (count - 1 - warm),
        "tuples": count,
        "results": int((found.kind == device.manifest.result_kinds["VALUE"]).sum()),
        "seconds": seconds,
    }


def check_totals(codec, found, totals):
    """Raise :exc:`AssertionError` unless every window of every key has its sum, in order."""
    is_value = found.kind == codec.manifest.result_kinds["VALUE"]
    boundary, key = found.boundary[is_value], found.key[is_value]
    cores, keys = codec.manifest.cores, codec.manifest.keys
    place = (boundary * cores + key % cores) * keys + key
    if not (np.diff(place) > 0).all():
        raise AssertionError("results are not sorted by boundary, core and key")
    if not (found.window["total"][is_value] == totals[boundary - 1, key]).all():
        raise AssertionError("a window has another sum than its tuples")
    if found.window["total"][is_value].sum() != totals.sum():
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
        write_bundle(parameters, folder / name)
        build_library(folder / name, report=report)
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
    own, beside = compared_cycles(1 << 16, Path("build") / "figures" / "described", report)
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
    bundle = folder / f"forward-{cores}"
    parameters = AggregateParameters(operator=circuit, cores=cores, timestamp_bits=24)
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
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
    rows, folder = 1 << 13, Path("build") / "figures"
    found = {cores: forwarded_cycles(cores, rows, folder, report) / rows for cores in FORWARDERS}
    notes = [f"{cores} cores: {cycles:.2f} cycles per tuple" for cores, cycles in found.items()]
    return Result(found[16] / found[1], notes=tuple(notes))
