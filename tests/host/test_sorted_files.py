# SPDX-License-Identifier: Apache-2.0
"""`--sorted` changes how a join of files runs: never what is accepted, and never the answer."""

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from tests.host.tables import bundle

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9
YEAR_1, YEAR_10000 = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9
INT64 = (-(1 << 63), (1 << 63) - 1)


class Kind:
    """Types of columns that can be compared; values are whole numbers of ticks."""

    def __init__(self, types, bound, scale=1):
        self.types, self.bound, self.scale = types, bound, scale

    def array(self, ticks, kind):
        """Return values of a type, from ticks."""
        tick = self.types[kind][0]
        numbers = [None if value is None else value // tick for value in ticks]
        if pa.types.is_decimal(kind):
            return pa.array(
                [n if n is None else Decimal(n).scaleb(-kind.scale) for n in numbers], kind
            )
        wide = pa.array(numbers, pa.uint64() if kind == pa.uint64() else pa.int64())
        return wide.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else wide.cast(kind)


def integers(kind):
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    return (1, -(1 << bits - 1), (1 << bits - 1) - 1) if signed else (1, 0, (1 << bits) - 1)


def moments(unit):
    """Size of a unit, and the moments that it can tell, within the years 1 to 9999."""
    size = UNITS[unit]
    low, high = (edge * size for edge in INT64)
    return size, max(low, YEAR_1), min(high, YEAR_10000 - size)


INTEGERS = Kind(
    {kind: integers(kind) for kind in (pa.int16(), pa.int64(), pa.uint32(), pa.uint64())}, str
)
TIMES = Kind({pa.timestamp(unit): moments(unit) for unit in UNITS}, lambda ticks: f"{ticks}ns")
ZONED = Kind({pa.timestamp(unit, "UTC"): moments(unit) for unit in UNITS}, TIMES.bound)
DAYS = Kind(
    {pa.date32(): (DAY, YEAR_1, YEAR_10000 - DAY)}, lambda ticks: f"{ticks // DAY}d"
)  # fmt: skip
CLOCK = Kind(
    {pa.time64("us"): (1000, 0, DAY - 1000), pa.time64("ns"): (1, 0, DAY - 1)}, TIMES.bound
)
CENTS = Kind(
    {pa.decimal128(18, 2): (100, -(10**20) + 100, 10**20 - 100),
     pa.decimal128(18, 4): (1, -(10**18) + 1, 10**18 - 1)},
    lambda ticks: str(Decimal(ticks).scaleb(-4)),
)  # fmt: skip


@st.composite
def values(draw, kind, size, near, spread):
    """Return ticks that two sides share a place of, some of them far away, and their type."""
    chosen = draw(st.sampled_from(list(kind.types)))
    tick, low, high = kind.types[chosen]
    far = st.sampled_from([low, high]) | st.integers(low, high)
    ticks = st.integers(near - spread, near + spread).map(lambda at: min(max(at, low), high))
    given = draw(
        st.lists(ticks | far if draw(st.booleans()) else ticks, min_size=size, max_size=size)
    )
    return [at // tick * tick for at in given], chosen


@st.composite
def joins(draw):
    """Return two tables sorted by time, options, pairs, and whether 64 bits hold the times."""
    time, key = (
        draw(st.sampled_from([INTEGERS, TIMES, ZONED, DAYS])),
        draw(st.sampled_from([INTEGERS, TIMES, ZONED, DAYS, CLOCK, CENTS])),
    )
    sides = []
    sizes = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    scales = [
        draw(st.sampled_from([3, 10**4, 10**10, 10**15])) * (DAY if k is DAYS else 1)
        for k in (time, key)
    ]
    nears = [draw(st.integers(-5 * scale, 5 * scale)) for scale in scales]
    for size in sizes:
        times, time_type = draw(values(time, size, nears[0], scales[0]))
        keys, key_type = draw(values(key, size, nears[1], scales[1]))
        keys = [at if draw(st.integers(0, 5)) else None for at in keys]
        sides.append((sorted(times), time_type, keys, key_type))
    within = draw(st.integers(0, 2 * scales[0]) | st.just(10 * scales[0]))
    within = within // DAY * DAY if time is DAYS else within
    low = draw(
        st.integers(-3 * scales[1], 3 * scales[1]) | st.sampled_from([-(10**22), 10**22, None])
    )
    high = draw(st.integers(0, 3 * scales[1]) | st.sampled_from([10**22, 2 * 10**22, None]))
    high = high if high is None or low is None else low + high
    if key is DAYS:
        low, high = (at if at is None else at // DAY * DAY for at in (low, high))
    bounds = ["" if at is None else key.bound(at) for at in (low, high)]
    term = ["--band", f"k:k:{bounds[0]}:{bounds[1]}"]
    if draw(st.booleans()):
        term, low, high = ["--on", "k"], 0, 0
    tables = [
        pa.table({"t": time.array(times, t), "k": key.array(keys, k), "row": range(len(times))})
        for times, t, keys, k in sides
    ]
    options = ["--time", "t", "--within", time.bound(within), *term]
    ends = [at for times, *_ in sides for at in times]
    units = (max(ends) - min(ends)) // min(time.types[kind][0] for _, kind, *_ in sides)
    return tables, options, pairs(sides, within, low, high), units < 1 << 64


def pairs(sides, within, low, high):
    """Return the pairs of rows, by comparing each with each."""
    (left, _, ours, _), (right, _, theirs, _) = sides
    return {
        (a, b)
        for a, t in enumerate(left)
        for b, u in enumerate(right)
        if abs(t - u) <= within and None not in (ours[a], theirs[b])
        if (low is None or ours[a] - theirs[b] >= low)
        and (high is None or ours[a] - theirs[b] <= high)
    }


def answer(folder, options, device):
    """Return the exit code of a command, and the pairs of rows in the order of its answer."""
    path = folder / "o.parquet"
    path.unlink(missing_ok=True)
    names = ["--left", str(folder / "l.parquet"), "--right", str(folder / "r.parquet")]
    code = main(["join", *names, *options, "--device", device, "--output", str(path)])
    assert path.exists() == (code == 0)
    if code:
        return code, None
    table = pq.read_table(path)
    return code, list(zip(table["row"].to_pylist(), table["row_right"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """Devices with wide fields, and with narrow ones."""
    place = tmp_path_factory.mktemp("bundles")
    narrow = bundle(place / "narrow", keys=("u12",), timestamp_bits=16, cores=2, sub_window=8)
    signed = bundle(place / "signed", keys=("x40",), timestamp_bits=40, cores=1, sub_window=16)
    return ["software:", f"software:{narrow}", f"software:{signed}"]


@settings(max_examples=60)
@given(joins(), st.integers(0, 2))
def test_files_give_one_answer_or_are_refused_sorted_or_not(
    tmp_path_factory, devices, case, number
):
    folder = tmp_path_factory.mktemp("files")
    tables, options, expected, fits = case
    for name, table in zip("lr", tables, strict=True):
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=3)
    code, found = answer(folder, options, devices[number])
    assert answer(folder, [*options, "--sorted"], devices[number]) == (code, found)
    assert code in ((0, 2) if number else (0 if fits else 2,))
    if code == 0:
        assert len(found) == len(expected)
        assert set(found) == expected


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.date32()], ids=str
)
@pytest.mark.parametrize("is_band", [True, False])
def test_times_beyond_the_calendar_of_python_are_joined(tmp_path, capsys, kind, is_band):
    day = {"us": 86_400 * 10**6, "ms": 86_400 * 10**3}.get(getattr(kind, "unit", ""), 1)
    days = [-1_000_000, 2_932_900, 2_932_901, 3_000_000]
    plain = pa.int32() if kind == pa.date32() else pa.int64()
    times = pa.array([at * day for at in days], plain).cast(kind)
    table = pa.table({"t": times, "k": times, "row": range(4)})
    for name in "lr":
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=1)
    term = ["--band", "k:k:-1d:1d"] if is_band else ["--on", "k"]
    options = ["--time", "t", "--within", "1d", *term]
    found = [answer(tmp_path, [*options, *more], "software:") for more in ([], ["--sorted"])]
    near = {(1, 2), (2, 1)} if is_band else set()
    assert [(code, set(pairs)) for code, pairs in found] == [
        (0, {(n, n) for n in range(4)} | near)
    ] * 2
    pq.write_table(table.slice(2, 2), tmp_path / "r.parquet")
    pq.write_table(table.take([3, 2]), tmp_path / "l.parquet")
    for more in ([], ["--verify"]):
        assert answer(tmp_path, [*options, "--sorted", *more], "software:") == (2, None)
        said = capsys.readouterr().err
        assert "row 1 (the first is 0) has" in said
        assert f"after {days[3] * day} {getattr(kind, 'unit', 'days')}; sort" in said
