# SPDX-License-Identifier: Apache-2.0
"""A window that outgrows the device: software goes on, and no row of the answer shows where."""

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters
from host import TimeWindow
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError, CapacityError
from host.protocol.manifest import Manifest
from host.query.quantities import Duration
from host.query.queries import Query, Term
from host.query.tables import output_schema
from host.reference.types import JoinType
from spark_offload.measures import JoinMetrics
from spark_offload.task.join import JoinTask
from tests.halves import half
from tests.host.small_bundles import write_manifest
from tests.spark_offload.device_sources import made_by_task
from tests.windows import over

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("id", pa.int64())])
WIDTH = 40
HOLDS = 64
"""Tuples of a side that the small device has room for."""


def times(rng, rows, crowd):
    """Rising times, a tuple in each one on average; in the crowd eight times as many."""
    steps = rng.integers(0, 3, rows)
    if crowd is not None:
        begin = int(crowd * rows)
        steps[begin : begin + 400] = rng.random(len(steps[begin : begin + 400])) < 0.125
    return np.cumsum(steps) - 700


def partition(seed, *, rows=1500, crowd=0.5, halo=0, nulls=0.0):
    """Tagged batches of any lengths; with ``halo`` so many first rows belong to another range."""
    rng = np.random.default_rng(seed)
    order = times(rng, rows, crowd)
    # By time, on a tie left rows first, as Spark sorts.
    side = rng.integers(0, 2, rows).astype(np.int8)
    side = side[np.lexsort((side, order))]
    number = np.arange(rows)
    columns = {"side": side, "order": order, "row": number}
    x = rng.integers(0, 4, rows)
    no_x = rng.random(rows) < nulls
    for letter, of_side in (("l", 0), ("r", 1)):
        for index, values in enumerate((order, x, number)):
            mask = (side != of_side) | (no_x if index == 1 else False)
            columns[f"{letter}{index}"] = pa.array(values, mask=mask)
    if halo:
        columns |= {"part": np.ones(rows, np.int32), "halo": number < halo}
        columns["alone"] = order >= order[halo] - WIDTH
    batch = pa.record_batch(columns)
    begin = 0
    while begin < rows:
        count = int(rng.choice([1, 7, 60, 400]))
        yield batch.slice(begin, count)
        begin += count


def run(batches, device, *, how="inner", software="software:", **options):
    """Return the answer, row by row, and what the task has measured."""
    how = JoinType(how)
    options = {"left": SCHEMA, "right": SCHEMA, **options}
    query = Query(
        band=options.pop("terms", (Term("x", "x"),)),
        time="t",
        **over(options.pop("window", TimeWindow(WIDTH))),
        how=how,
    )
    task = JoinTask(
        query=query,
        devices=made_by_task(device),
        left=options["left"],
        right=options["right"],
        output=output_schema(options["left"], options["right"], how=how),
        width=options.pop("width", WIDTH),
        software=software,
    )
    reports = []
    found = list(task.function("join", reports.append)(iter(batches)))
    answer = pa.Table.from_batches(found, task.output).to_pylist()
    return answer, reports[0]


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("how", "rows"),
    half(
        [kind.value for kind in JoinType],
        [
            {"crowd": 0.5, "nulls": 0.1},
            {"crowd": 0.02},  # nearly from the first row on
            {"crowd": 0.3, "halo": 700},  # within the halo of a range of time
            {"crowd": 0.6, "halo": 300, "nulls": 0.1},  # behind it
        ],
    ),
)
def test_the_answer_is_the_same_and_in_the_same_order(software_bundle, how, rows):
    for seed in range(3):
        expected, whole = run(partition(seed, **rows), "software:", how=how, software=None)
        answer, measured = run(partition(seed, **rows), software_bundle, how=how)
        assert answer == expected
        assert measured.handed_over
        assert 0 < measured.software_rows < 1500
        assert measured.results == whole.results == len(expected)
        for name in ("left_rows", "right_rows", "halo_rows"):
            assert getattr(measured, name) == getattr(whole, name)


@pytest.fixture(scope="module")
def short_times(tmp_path_factory):
    """The address of a software device whose timestamps end at 1,023."""
    values = Manifest.load(SOFTWARE_MANIFEST).values["parameters"]
    parameters = JoinParameters.from_dict(values).with_(timestamp_bits=10)
    return f"software:{write_manifest(parameters, tmp_path_factory.mktemp('short') / 'bundle')}"


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("how", "rows"),
    half(
        [kind.value for kind in JoinType],
        [{"crowd": None, "nulls": 0.1}, {"crowd": None, "halo": 300}, {"crowd": 0.9, "halo": 1300}],
    ),
)
def test_times_that_the_device_does_not_reach_have_the_same_answer(short_times, how, rows):
    for seed in range(3):
        expected, whole = run(partition(seed, **rows), "software:", how=how, software=None)
        answer, measured = run(partition(seed, **rows), short_times, how=how)
        assert answer == expected
        assert "units behind the first one and the device's timestamps have 10 bits" in (
            measured.handed_over
        )
        assert 0 < measured.software_rows < 1500
        assert measured.results == whole.results == len(expected)
        for name in ("left_rows", "right_rows", "halo_rows"):
            assert getattr(measured, name) == getattr(whole, name)


def pair_at(first, last):
    """A left row, and a right row at another time."""
    columns = {"side": np.array([0, 1], np.int8), "order": np.array([first, last])}
    columns["row"] = np.arange(2)
    for letter, mask in (("l", [False, True]), ("r", [True, False])):
        for index, values in enumerate(((first, last), (1, 1), (0, 1))):
            columns[f"{letter}{index}"] = pa.array(values, pa.int64(), mask=np.array(mask))
    return [pa.record_batch(columns)]


@pytest.mark.parametrize("first", [0, -(1 << 63), (1 << 63) - 1 - 1024])
def test_the_last_timestamp_is_reached_and_the_next_one_is_not(short_times, first):
    for distance, rows in ((1023, 0), (1024, 1)):
        options = {"window": TimeWindow(2000), "width": 2000}
        answer, measured = run(pair_at(first, first + distance), short_times, **options)
        assert len(answer) == 1
        assert measured.software_rows == rows


def test_without_software_the_error_names_the_column_and_the_bits(short_times):
    with pytest.raises(
        AcceleratorLimitError, match=r"'right.t' holds 1024 in row 0.*11 bits of timestamp"
    ):
        run(pair_at(0, 1024), short_times, software=None)


def test_a_window_that_fits_stays_on_the_device(software_bundle):
    _, measured = run(partition(1, crowd=None), software_bundle)
    assert measured.handed_over == ""
    assert measured.software_rows == 0
    alone = run(partition(1, crowd=None), "software:")[1]
    for name in ("tuples_r", "tuples_s", "results"):
        assert measured.counters[name] == alone.counters[name]


def crowd_of(count):
    """So many left rows at one time, and one right row."""
    side = np.array([0] * count + [1], np.int8)
    order = np.full(count + 1, 5)
    columns = {"side": side, "order": order, "row": np.arange(count + 1)}
    for letter, of_side in (("l", 0), ("r", 1)):
        for index, values in enumerate((order, order, np.arange(count + 1))):
            columns[f"{letter}{index}"] = pa.array(values, mask=side != of_side)
    return [pa.record_batch(columns)]


def test_the_capacity_itself_is_no_overflow_and_one_row_more_is(software_bundle):
    for count, rows in ((HOLDS, 0), (HOLDS + 1, 2)):
        answer, measured = run(crowd_of(count), software_bundle)
        assert len(answer) == count
        assert measured.software_rows == rows
    assert f"row {HOLDS} of side R (left)" in measured.handed_over
    assert f"hold {HOLDS + 1} rows of a side and the device has room for 64" in measured.handed_over
    shown = str(JoinMetrics((measured,)))
    assert f"partition 0: {measured.handed_over}" in shown
    assert "in software from row" in JoinMetrics((measured,))._repr_html_()


def test_without_software_the_error_says_how_many_rows_the_window_needs(software_bundle):
    # Two crowds, of which the second one, after the device has given up, is the larger.
    batches = [*partition(1, rows=900, crowd=0.5)]
    order = np.concatenate([batch.column("order") for batch in batches])
    side = np.concatenate([batch.column("side") for batch in batches])
    largest = max(
        int(np.sum((side == of) & (order >= time - WIDTH) & (np.arange(900) <= at)))
        for at, (time, of) in enumerate(zip(order, side, strict=True))
    )
    with pytest.raises(CapacityError, match=f"the {largest} tuples needed.*build=True"):
        run(batches, software_bundle, software=None)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["timestamp", "date"])
def test_times_of_other_types(software_bundle, kind):
    begin = date(2020, 1, 1)
    days = np.sort(np.random.default_rng(3).integers(0, 300, 1000))
    side = np.zeros(1000, np.int8)
    side[np.random.default_rng(4).random(1000) < 0.5] = 1
    side = side[np.lexsort((side, days))]
    values = [begin + timedelta(days=int(day)) for day in days]
    order = pa.array(values, pa.date32())
    width, scale = 30, 1
    if kind == "timestamp":
        order = order.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
        scale = 86_400_000_000
    columns = {"side": side, "order": order, "row": np.arange(1000)}
    for letter in ("l", "r"):
        columns |= {
            f"{letter}{i}": column for i, column in enumerate((order, side, np.arange(1000)))
        }
    schema = pa.schema([("t", order.type), ("x", pa.int8()), ("id", pa.int64())])
    options = {
        "left": schema, "right": schema, "terms": (), "width": width * scale,
        "window": Duration(width * 86_400_000_000_000),
    }  # fmt: skip
    expected, _ = run([pa.record_batch(columns)], "software:", **options)
    answer, measured = run([pa.record_batch(columns)], software_bundle, **options)
    assert answer == expected
    assert measured.software_rows
