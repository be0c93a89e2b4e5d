# SPDX-License-Identifier: Apache-2.0
"""The paths of the host give one answer, or one error: a plain loop's."""

from collections import Counter
import dataclasses
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import UsageError, open_device
from host.__main__ import main
from host.columns.encoding import joined_schema
from host.operators.asof import AsofJoin
from host.operators.verification import reference_pairs
from host.query.queries import Query
from host.query.tables import as_table, output_schema
from host.session.join import Join
from tests.host.simulated_bundle import simulated_bundle
from tests.host.small_bundles import write_manifest
from tests.host.tables import naive_join, shared_windows
from tests.paths.arguments import asof_options, command_options
from tests.paths.asof_cases import ASOF_CASES, ASOF_REFUSED, random_asof_case
from tests.paths.asof_oracle import compare_asof
from tests.paths.asof_paths import asof_paths
from tests.paths.cases import CASES, REFUSED
from tests.paths.oracle import compare, row_of
from tests.paths.overlap_cases import OVERLAPS, overlapping_pairs, random_overlap
from tests.paths.random_cases import random_case

KEYS = (KeyField(name="f0", bits=64), KeyField(name="f1", bits=64))
PARAMETERS = JoinParameters.of(
    cores=3, sub_window=20, probes=4, lanes=2, timestamp_bits=64, probe_bits=4, keys=KEYS
)
INDEX = PARAMETERS.with_(engine="index", lanes=1)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The address of a simulated accelerator with fields of 64 bits."""
    return simulated_bundle(PARAMETERS, tmp_path_factory.mktemp("paths") / "bundle")


def by_reference(case):
    """Take the rows that the reference join names."""
    left, right = as_table(case.left), as_table(case.right)
    query = case.query
    per_window = isinstance(query, Query) and query.per_window
    schema = output_schema(left.schema, right.schema, query.suffix, query.how)
    if per_window:
        schema = joined_schema(left.schema, right.schema, query)
    columns = []
    pairs = reference_pairs(case.left, case.right, case.query)
    for table, numbers in zip((left, right), pairs, strict=True):
        taken = table.take(pa.array([None if n < 0 else n for n in numbers.tolist()], pa.int64()))
        columns += taken.columns
    if per_window:
        # The reference names a pair once for each of its windows, one after the other.
        windows, times = (
            [],
            [
                table.column(name).to_pylist()
                for table, name in zip((left, right), case.query.time, strict=True)
            ],
        )
        while len(windows) < len(pairs[0]):
            at = len(windows)
            own = (column[numbers[at]] for column, numbers in zip(times, pairs, strict=True))
            windows += shared_windows(case.query, *own)
        ends = zip(*windows, strict=True) if windows else ([], [])
        columns += [pa.array(end, schema.types[-1]) for end in ends]
    return pa.Table.from_arrays(columns[: len(schema)], schema=schema)


def by_device(case, device, *, streamed=False):
    """Join on an open device: tables, or readers if the inputs are declared sorted."""
    tables = (case.left, case.right)
    if streamed:
        # Batches of five rows, so that most cases have several.
        tables = tuple(
            pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=5))
            for table in tables
        )
    return Join(*tables, case.query, device).run().table


def by_command(case, folder, device):
    """Run the command in this process; the error that it prints is raised."""
    assert main(["join", *command_options(case, folder, device=device)]) == 0
    return pq.read_table(folder / "out.parquet")


def checked(case, table):
    return compare(case, table.column_names, rows_of(table), ordered=True)


def answers(cases, devices, folder):
    """Yield what is wrong with the answers to ``cases`` on every path."""
    for number, case in enumerate(cases):
        paths = {"the reference join": lambda: by_reference(case)}
        for name, device in devices.items():
            paths[f"tables on {name}"] = lambda device=device: by_device(case, device)
            if case.query.sorted:
                paths[f"streams on {name}"] = lambda device=device: by_device(
                    case, device, streamed=True
                )
        place = folder / str(number)
        place.mkdir()
        paths["python -m host join"] = lambda: by_command(case, place, "software:")
        yield from wrong_answers(case, paths, lambda table: checked(case, table))


def asof_answers(cases, devices, folder):
    """Yield what is wrong with the answers to as-of joins on every path."""
    for number, case in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        for path, join in asof_paths(case, devices, place).items():
            ordered = path != "pieces in any order"
            yield from wrong_answers(
                case,
                {path: join},
                lambda table: compare_asof(
                    case, table.column_names, rows_of(table), ordered=ordered
                ),
            )


def wrong_answers(case, paths, judge):
    """Yield what ``judge`` or an error says of the answers to one case, with their paths."""
    for path, join in paths.items():
        try:
            wrong = judge(join())
        except Exception as error:
            wrong = f"{case} ({case.query}): {error!r}"
        if wrong:
            yield f"{path}: {wrong}"


def rows_of(table):
    return [row_of(row.values()) for row in table.to_pylist()]


@pytest.fixture
def devices(simulated, tmp_path):
    """Open devices by name."""
    two = write_manifest(INDEX.with_(tuples_per_word=2), tmp_path / "two")
    index = write_manifest(INDEX, tmp_path / "index")
    with (
        open_device("software:") as software,
        open_device(f"software:{two}") as pairing,
        open_device(f"software:{index}") as walking,
        open_device(simulated) as simulator,
    ):
        yield {
            "software:": software,
            "two tuples in a word": pairing,
            "an index": walking,
            "sim:": simulator,
        }


def test_adversarial_joins_have_one_answer(devices, tmp_path):
    assert list(answers(CASES, devices, tmp_path)) == []


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 600), marks=pytest.mark.long)], ids=str
)
def test_random_joins_have_one_answer(devices, tmp_path, seeds):
    assert list(answers(map(random_case, seeds), devices, tmp_path)) == []


#: Types that hold the same values as others, and are compared with these.
ALIKE = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}


def viewed(case):
    """Return a case whose texts and bytes are views."""

    def of_table(table):
        types = [ALIKE.get(dtype, dtype) for dtype in table.schema.types]
        fields = [f.with_type(t) for f, t in zip(table.schema, types, strict=True)]
        return pa.Table.from_arrays(
            [column.cast(t) for column, t in zip(table.columns, types, strict=True)],
            schema=pa.schema(fields),
        )

    return dataclasses.replace(case, left=of_table(case.left), right=of_table(case.right))


@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.long)])
def test_views_are_joined_as_what_they_show(devices, tmp_path, count):
    cases = [case for case in map(random_case, range(400)) if viewed(case) != case]
    cases = [viewed(case) for case in cases[:count]]
    assert list(answers(cases, devices, tmp_path)) == []
    assert len(cases) == count
    asof = [case for case in map(random_asof_case, range(200)) if viewed(case) != case]
    asof = [viewed(case) for case in asof[:count]]
    for number, case in enumerate(asof):
        place = tmp_path / f"asof{number}"
        place.mkdir()
        joins = asof_paths(case, {}, place)
        named = {path: joins[path] for path in ("tables on the host", "host asof")}
        wrong = wrong_answers(
            case,
            named,
            lambda table, case=case: compare_asof(
                case, table.column_names, rows_of(table), ordered=True
            ),
        )
        assert list(wrong) == []
    assert len(asof) == count


@pytest.mark.parametrize("right_type", [pa.uuid(), pa.binary(16)], ids=str)
def test_uuids_are_keys(tmp_path, right_type):
    rng = random.Random(5)
    keys = [uuid.UUID(int=rng.getrandbits(128)).bytes for _ in range(4)]
    tables = [
        pa.table(
            {
                "t": pa.array(range(20)),
                "k": pa.array([rng.choice([*keys, None]) for _ in range(20)], dtype),
            }
        )
        for dtype in (pa.uuid(), right_type)
    ]
    for name, table in zip("lr", tables, strict=True):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    left, right = (table["k"].cast(pa.binary(16)).to_pylist() for table in (tables[0], tables[1]))
    files = ["--left", str(tmp_path / "l.parquet"), "--right", str(tmp_path / "r.parquet")]
    out = ["--output", str(tmp_path / "o.parquet"), "--verify"]
    how = ["--time", "t", "--on", "k", "--within", "3", "--device", "software:"]
    assert main(["join", *files, *out, *how]) == 0
    found = pq.read_table(tmp_path / "o.parquet")
    assert sorted(zip(found["t"].to_pylist(), found["t_right"].to_pylist(), strict=True)) == [
        (one, other)
        for one in range(20)
        for other in range(20)
        if abs(one - other) <= 3 and left[one] is not None and left[one] == right[other]
    ]
    assert main(["asof", *files, *out, "--time", "t", "--on", "k"]) == 0
    found = pq.read_table(tmp_path / "o.parquet")
    assert found["t_right"].to_pylist() == [
        max(
            (at for at in range(one + 1) if left[one] is not None and right[at] == left[one]),
            default=None,
        )
        for one in range(20)
    ]
    grouped = ["--input", str(tmp_path / "l.parquet"), "--time", "t", "--window", "20"]
    assert main(["aggregate", *grouped, *out, "--on", "k", "--aggregate", "n=count"]) == 0
    found = pq.read_table(tmp_path / "o.parquet")
    numbers = zip(found["k"].cast(pa.binary(16)).to_pylist(), found["n"].to_pylist(), strict=True)
    assert dict(numbers) == Counter(left)


def test_overlaps_are_the_pairs_of_intervals_that_share_a_moment():
    wrong = [
        overlap.name
        for overlap in (*OVERLAPS, *map(random_overlap, range(40)))
        if sorted(naive_join(overlap.left, overlap.right, overlap.case.query))
        != overlapping_pairs(overlap)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 300), marks=pytest.mark.long)], ids=str
)
def test_overlaps_have_one_answer(devices, tmp_path, seeds):
    cases = [overlap.case for overlap in (*OVERLAPS, *map(random_overlap, seeds))]
    wrong = []
    for terms in (2, 3):
        # A bound cannot share a field of the device with other terms.
        able = {
            name: device for name, device in devices.items() if len(device.manifest.keys) >= terms
        }
        place = tmp_path / str(terms)
        place.mkdir()
        wrong += answers([case for case in cases if len(case.query.terms) == terms], able, place)
    assert wrong == []


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 600), marks=pytest.mark.long)], ids=str
)
def test_asof_joins_have_one_answer(devices, tmp_path, seeds):
    cases = [*ASOF_CASES, *map(random_asof_case, seeds)]
    assert list(asof_answers(cases, devices, tmp_path)) == []


@pytest.mark.parametrize("case", ASOF_REFUSED, ids=str)
def test_asof_joins_that_must_be_refused_are_refused_on_every_path(case, tmp_path, capsys):
    with open_device("software:") as device:
        for path in (None, device):
            with pytest.raises(UsageError) as caught:
                AsofJoin(case.left, case.right, case.query, path)
            assert [word for word in case.words if word not in str(caught.value)] == []
    assert main(["asof", *asof_options(case, tmp_path)]) == 2
    message = capsys.readouterr().err
    assert [word for word in case.words if word not in message] == []
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_must_be_refused_is_refused_on_every_path(case, tmp_path, capsys):
    joins = [lambda device: by_reference(case), lambda device: by_device(case, device)]
    if case.query.sorted:
        joins.append(lambda device: by_device(case, device, streamed=True))
    with open_device("software:") as device:
        for join in joins:
            with pytest.raises(UsageError) as caught:
                join(device)
            assert [word for word in case.words if word not in str(caught.value)] == []
    if any(len(set(t.column_names)) < t.num_columns for t in (case.left, case.right)):
        return  # Parquet files of such tables can be written but not read.
    assert main(["join", *command_options(case, tmp_path, device="software:")]) == 2
    message = capsys.readouterr().err
    assert [word for word in case.words if word not in message] == []
    assert not (tmp_path / "out.parquet").exists()
