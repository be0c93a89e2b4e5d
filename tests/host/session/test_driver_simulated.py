# SPDX-License-Identifier: Apache-2.0
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import CountWindow, InputRate, Ordering, TimeWindow, open_device
from host.__main__ import main
from host.devices.bundles import choose_device
from host.files.reading import read_table
from host.files.writing import write_table
from host.operators.verification import compare_pairs, reference_pairs
from host.pipeline import Pipeline
from host.protocol.manifest import RoutedClock
from host.protocol.segments import round_size
from host.query.queries import Query, Term
from host.session.join import Join, join_tables
from tests.halves import half
from tests.host.session.test_driver import random_table
from tests.host.simulated_bundle import simulated_bundle
from tests.host.tables import naive_join, naive_results
from tests.sim.verilated.test_words import SHAPES as WORDS
from tests.windows import over

SCAN = JoinParameters.of(
    cores=3, sub_window=20, probes=4, lanes=2, timestamp_bits=16, probe_bits=4, fan_in=2,
    keys=(KeyField(name="f0", bits=8), KeyField(name="f1", bits=4, signed=False)),
)  # fmt: skip
INDEX = SCAN.with_(engine="index", lanes=1)
ROUNDS = SCAN.with_(probes=2, rounds=True)
PARAMETERS = {
    "scan": WORDS["3 cores, 4 probes"],
    "scan in rounds": ROUNDS,
    "rounds, two ports": ROUNDS.with_(result_streams=2),
    "index": INDEX,
    "index, two in a word": INDEX.with_(tuples_per_word=2),
}


# Several files simulate these three, so that few libraries have to be compiled. The index with one
# tuple in a word is that of the default device, too.
@pytest.fixture(
    scope="module",
    params=[
        "scan",
        pytest.param("scan in rounds", marks=pytest.mark.long),
        "rounds, two ports",
        pytest.param("index", marks=pytest.mark.long),
        "index, two in a word",
    ],
)
def simulator(request, tmp_path_factory):
    """URI of a small accelerator, simulated; built once, or found in the cache."""
    return simulated_bundle(
        PARAMETERS[request.param], tmp_path_factory.mktemp("simulator") / "bundle"
    )


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "window", [CountWindow(1), CountWindow(17), CountWindow(60), TimeWindow(0), TimeWindow(9)]
)
@pytest.mark.parametrize(
    "ordering",
    [
        Ordering.outer(),
        Ordering.inner(),
        Ordering.inner(in_hardware=True),
        Ordering.none(),
        Ordering.relaxed(2),
        Ordering.adaptive(12, InputRate(0.4), interval=64),
    ],
    ids=str,
)
def test_the_simulated_accelerator_answers_as_a_loop_does(simulator, window, ordering):
    rng = np.random.default_rng(11)
    terms = [Term("x", "x", -1, 2), Term("name", "name")]
    query = Query(band=terms, time="t", **over(window), ordering=ordering)
    with open_device(simulator) as device:
        for left_rows, right_rows in [(300, 400), (0, 9), (30, 500), (0, 0)]:
            left = random_table(rng, left_rows, 700)
            right = random_table(rng, right_rows, 700)
            result = join_tables(left, right, query, device)
            pairs = list(zip(*(rows.tolist() for rows in result.pairs), strict=True))
            expected = naive_join(left, right, query)
            assert (pairs if ordering.period == 1 else sorted(pairs)) == (
                expected if ordering.period == 1 else sorted(expected)
            )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rounds", "window"), half([1, 2, 6, 1_000_000], [CountWindow(57), TimeWindow(60)])
)
def test_an_inner_order_in_hardware_is_by_rounds_then_by_cores(simulator, rounds, window):
    """An accelerator without rounds leaves the order to the host, which sorts by stored rows."""
    rng = np.random.default_rng(17)
    terms = [Term("x", "x", -2, 3)]
    ordering = Ordering.inner(rounds, in_hardware=True)
    query = Query(band=terms, time="t", **over(window), ordering=ordering)
    with open_device(simulator) as device:
        manifest = device.manifest
        size = round_size(manifest, rounds)
        cores = manifest.storage.cores if "INNER" in manifest.operations else 1
        left, right = (random_table(rng, 500, 900, nulls=0) for _ in range(2))
        result = join_tables(left, right, query, device)
        pairs = list(zip(*(rows.tolist() for rows in result.pairs), strict=True))
        expected = naive_join(left, right, query)
        assert sorted(pairs) == sorted(expected)
        times = [table["t"].to_pylist() for table in (left, right)]
        places = [ordinals(times, side) for side in (0, 1)]

        def place(pair):
            """The later tuple's place, the earlier tuple's round, its core, and itself."""
            places_of = [places[side][row] for side, row in enumerate(pair)]
            later = max((at, side) for side, (at, _) in enumerate(places_of))[1]
            stored = places_of[1 - later][1]
            local, core = divmod(stored, cores)
            return places_of[later][0], local // size if cores > 1 else 0, core, stored

        assert [place(pair) for pair in pairs] == sorted(map(place, pairs))
        if rounds == 1:
            assert pairs == expected


def ordinals(times, side):
    """For each row of a side, its place in the order of arrival, and its number in its side."""
    everything = sorted((time, of, row) for of in (0, 1) for row, time in enumerate(times[of]))
    own = [(at, row) for at, (_, of, row) in enumerate(everything) if of == side]
    return {row: (at, number) for number, (at, row) in enumerate(own)}


@pytest.mark.parametrize("window", [CountWindow(17), TimeWindow(9)])
def test_the_simulated_accelerator_answers_any_type_as_a_loop_does(simulator, window):
    rng = np.random.default_rng(13)
    left, right = random_table(rng, 200, 400), random_table(rng, 260, 400)
    terms = [Term("x", "x", -1, 2), Term("name", "name")]
    with open_device(simulator) as device:
        for how in ("full", "left_semi", "left_anti"):
            query = Query(band=terms, time="t", **over(window), how=how)
            result = join_tables(left, right, query, device)
            rows = zip(*(rows.tolist() for rows in result.pairs), strict=True)
            found = [tuple(None if row < 0 else row for row in pair) for pair in rows]
            assert found == naive_results(left, right, query)


@pytest.mark.few(1)
def test_a_cut_join_leaves_the_device_usable(simulator):
    rng = np.random.default_rng(12)
    left, right = random_table(rng, 400), random_table(rng, 400)
    query = Query(on="x", time="t", rows=60)
    with open_device(simulator) as device:
        for cut in range(3):
            join = Join(left, right, query, device, record=True, batch_rows=64, buffer_rows=64)
            reader = join.batches()
            for _ in range(cut):
                next(reader)
            reader.close()
            # Words of the cut join may still be on their way; they are nobody's tuples.
            result = join_tables(left, right, query, device, trace=True)
            assert result.table.num_rows == len(naive_join(left, right, query))
            assert len(result.latency.processing) == 800
            assert result.latency.visiting.min() > 0
            assert join.run().table.num_rows == result.table.num_rows


def test_latencies_are_cycles_between_acceptance_and_emission(simulator):
    rng = np.random.default_rng(13)
    left, right = random_table(rng, 200), random_table(rng, 200)
    query = Query(on="x", time="t", rows=30)
    with open_device(simulator) as device:
        result = join_tables(left, right, query, device, trace=True)
    latency = result.latency
    assert len(latency.processing) == 400
    assert len(latency.visiting) == result.table.num_rows
    assert latency.visiting.min() > 0
    assert latency.processing.max() >= latency.visiting.max()
    assert latency.processing.max() < result.cycles
    assert latency.emitted.max() - latency.emitted.min() < result.cycles


def test_few_cycles_are_spent_on_nothing(simulator):
    table = random_table(np.random.default_rng(14), 2000, 9)
    query = Query(band=[("x", "x", 50, 50)], time="t", rows=1)
    with open_device(simulator) as device:
        result = join_tables(table, table, query, device)
    assert result.cycles < 2 * 4000


def test_files_are_joined_on_the_simulated_accelerator(simulator, tmp_path, capsys):
    rng = np.random.default_rng(15)
    tables = {name: random_table(rng, 200, 300) for name in ("left", "right")}
    for name, table in tables.items():
        write_table(table.to_batches(), table.schema, tmp_path / f"{name}.parquet")
    command = [
        "join", "--left", str(tmp_path / "left.parquet"),
        "--right", str(tmp_path / "right.parquet"), "--output", str(tmp_path / "out.csv"),
        "--time", "t", "--band", "x:x:-1:1", "--within", "12", "--device", simulator, "--verify",
    ]  # fmt: skip
    assert main(command) == 0
    assert "agree with the reference join" in capsys.readouterr().err
    query = Query(band=[("x", "x", -1, 1)], time="t", within=12)
    assert read_table(tmp_path / "out.csv").num_rows == len(naive_join(*tables.values(), query))


def test_the_answer_is_the_same_if_keys_are_known_to_be_distinct(simulator):
    rows = 40
    left = pa.table({"t": np.arange(rows), "x": np.arange(rows) % 8})
    right = pa.table({"t": np.arange(0, 8), "x": np.arange(8)})
    query = Query(on="x", time="t", within=50)
    answers = []
    with open_device(simulator) as device:
        for known in ([], ["x"], []):
            sides = (
                Pipeline.of_table(left, sorted_by=["t"]),
                Pipeline.of_table(right, sorted_by=["t"], distinct_by=known),
            )
            answers.append(sides[0].join(sides[1], query, device).collect())
    assert answers[0].num_rows == len(naive_join(left, right, query))
    assert answers[1].equals(answers[0])
    assert answers[2].equals(answers[0])


def few_keys_and_a_band(rows, window, values):
    """Tables with eight keys, and a query for rows with the same key and nearly the same x."""
    rng = np.random.default_rng(14)
    tables = [
        pa.table(
            {
                "t": np.arange(rows),
                "key": rng.integers(0, 8, rows),
                "x": rng.integers(0, values, rows),
            }
        )
        for _ in range(2)
    ]
    terms = [Term("key", "key"), Term("x", "x", -1, 1)]
    return *tables, Query(band=terms, time="t", rows=window)


def check_few_keys_and_a_band(uri, rows, window, values, most):
    """The answer is that of the reference, in at most so many cycles per tuple."""
    left, right, query = few_keys_and_a_band(rows, window, values)
    with open_device(uri) as device:
        assert device.manifest.engine == "index"
        result = join_tables(left, right, query, device)
    expected = reference_pairs(left, right, query)
    assert compare_pairs(result.pairs, expected, ordered=True).agrees
    assert result.cycles < most * (left.num_rows + right.num_rows)


@pytest.mark.long
def test_few_keys_and_a_band_take_hardly_more_cycles_than_tuples(tmp_path):
    """The chain of a key, an eighth of the window, would be read from end to end."""
    uri = simulated_bundle(WORDS["index"], tmp_path / "bundle")
    check_few_keys_and_a_band(uri, rows=2_000, window=120, values=500, most=1.3)


@pytest.mark.long
def test_few_keys_and_a_band_take_hardly_more_cycles_than_tuples_on_the_default_device():
    *_, query = few_keys_and_a_band(1, 4_000, 10_000)
    uri = choose_device("sim:", query).uri
    check_few_keys_and_a_band(uri, rows=8_000, window=4_000, values=10_000, most=1.1)


@pytest.mark.parametrize("inputs", ["whole", "sorted"])
def test_the_command_tells_what_the_cycles_take_in_hardware(simulator, tmp_path, capsys, inputs):
    bundle = tmp_path / "bundle"
    shutil.copytree(simulator.removeprefix("sim:"), bundle)
    values = json.loads((bundle / "manifest.json").read_text())
    clock = RoutedClock("big", True, 4_000, "lfe5u-85f", 8, 150.0, "x.json", "commit abc")
    (bundle / "manifest.json").write_text(json.dumps({**values, "clock": vars(clock)}))
    table = random_table(np.random.default_rng(4), 50, 100).sort_by("t")
    write_table(table.to_batches(), table.schema, tmp_path / "t.parquet")
    told = []
    for device in (f"sim:{bundle}", simulator, f"software:{bundle}"):
        paths = [f"--{name}={tmp_path / 't.parquet'}" for name in ("left", "right")]
        options = ["--time", "t", "--on", "x", "--rows", "9", "--device", device]
        options += ["--sorted"] if inputs == "sorted" else []
        assert main(["join", *paths, *options, "--output", str(tmp_path / "out.parquet")]) == 0
        told.append(capsys.readouterr().err)
    cycles = int(re.search(r", (\d+) cycles on sim:", told[0])[1])
    (line,) = re.findall(r"^hardware: (.*)$", told[0], re.MULTILINE)
    assert line.startswith(f"{cycles:,} cycles: ")
    assert line.endswith(
        "at 150.0 MHz, the routed clock of its twin `big` on an lfe5u-85f of grade 8; its routing "
        "report is of an earlier design (commit abc)"
    )
    assert "hardware" not in told[1] + told[2]
