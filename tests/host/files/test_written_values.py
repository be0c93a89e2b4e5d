# SPDX-License-Identifier: Apache-2.0
"""Every value of every type is written so that the file says it exactly, or is refused by name."""

import csv as plain_csv
from datetime import date, timedelta
from decimal import Decimal
import json
import os
import re
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.errors import UsageError
from host.files.reading import FORMATS
from host.files.writing import write_table
from host.pipeline import Pipeline

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EDGES = st.sampled_from([0, 1, -1, (1 << 63) - 1, -(1 << 63)]) | st.integers(
    -(1 << 63), (1 << 63) - 1
)
INF, NAN = float("inf"), float("nan")


def written(folder, array, ending):
    """Write a column, in batches of two rows; return the path."""
    table = pa.table({"x": array})
    path = folder / f"t{ending}"
    assert write_table(table.to_batches(max_chunksize=2), table.schema, path) == len(array)
    return path


def cells(path):
    """Return the cells of a written CSV file; None where there is none."""
    with path.open(newline="") as stream:
        text = stream.read()
    # The module `csv` does not tell an empty cell from an empty text.
    rows = list(plain_csv.reader(re.sub('(?m)^""$', "EMPTY", text).splitlines(keepends=True)))
    assert rows[0] == ["x"]
    return [{"EMPTY": "", "": None}.get(*(row or [""]) * 2) for row in rows[1:]]


def refuse(name):
    raise AssertionError(f"{name} is no JSON")


def objects(path):
    """Return the values of a written JSON file."""
    return [json.loads(line, parse_constant=refuse)["x"] for line in path.read_text().splitlines()]


def instant(text, per_second):
    """Return the units since 1970 of a time as ISO 8601 writes it, of any year."""
    year, month, day, hour, minute, second, digits, zone = re.fullmatch(
        r"([+-]\d{4,}|\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z)?)?", text
    ).groups()
    assert len(digits or "") == len(str(per_second)) - 1
    assert len(year) == 4 or not 0 <= int(year) <= 9999
    cycles, near = divmod(int(year) - 1, 400)
    days = cycles * 146_097 + date(near + 1, int(month), int(day)).toordinal() - 719_163
    seconds = days * 86_400 + int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    return seconds * per_second + int(digits or 0), zone


def texts_of(path):
    return cells(path) if path.suffix == ".csv" else objects(path)


@pytest.mark.parametrize("ending", [".csv", ".json"])
@settings(max_examples=40)
@given(
    st.sampled_from(list(UNITS)),
    st.sampled_from([None, "UTC", "Europe/Berlin", "America/St_Johns", "-03:30", "+14:00"]),
    st.lists(
        st.none()
        | EDGES
        | st.integers(-62_200_000_000, -62_000_000_000)
        | st.integers(253_000_000_000, 254_000_000_000),
        max_size=6,
    ),
)
def test_times_of_all_units_and_zones(tmp_path_factory, ending, unit, zone, numbers):
    folder = tmp_path_factory.mktemp("times")
    path = written(folder, pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, zone)), ending)
    found = [None if text is None else instant(text, UNITS[unit]) for text in texts_of(path)]
    assert found == [None if n is None else (n, zone and "Z") for n in numbers]


@pytest.mark.parametrize("ending", [".csv", ".json"])
@settings(max_examples=20)
@given(st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1), max_size=6), st.booleans())
def test_dates_of_all_years(tmp_path_factory, ending, days, is_wide):
    folder = tmp_path_factory.mktemp("dates")
    array = pa.array(days, pa.int32()).cast(pa.date32())
    path = written(folder, array.cast(pa.date64()) if is_wide else array, ending)
    found = [None if text is None else instant(text, 1)[0] // 86_400 for text in texts_of(path)]
    assert found == days


@pytest.mark.parametrize("ending", [".csv", ".json"])
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=5)
@given(data=st.data())
def test_times_of_day(tmp_path_factory, ending, unit, data):
    folder = tmp_path_factory.mktemp("times")
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    end = 86_400 * UNITS[unit]
    numbers = data.draw(st.lists(st.none() | st.integers(0, end - 1), max_size=4))
    plain = pa.int32() if unit in ("s", "ms") else pa.int64()
    path = written(folder, pa.array(numbers, plain).cast(kind), ending)
    noon = [
        None if t is None else instant(f"1970-01-01 {t}", UNITS[unit])[0] for t in texts_of(path)
    ]
    assert noon == numbers
    wrong = pa.array([0, None, 5, end], plain).cast(kind)
    with pytest.raises(UsageError, match=rf"row 3 \(the first is 0\) has {end} {unit} since midn"):
        written(folder, wrong, ending)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    "array",
    [
        pa.array([True, None, False]),
        *(pa.array([None, 0, (1 << n) - 1], f"uint{n}") for n in (8, 16, 32, 64)),
        *(pa.array([1 - (1 << n - 1), None], f"int{n}") for n in (8, 16, 32, 64)),
        pa.array([0.5, None, -65504.0], pa.float16()),
        pa.array([0.1, None, 3.4e38], pa.float32()),
        pa.array([0.1, None, 5e-324, 1e300, 2.0**63, -0.0]),
        pa.array([Decimal("1.50"), None, Decimal("-99999999.99")], pa.decimal128(10, 2)),
        pa.array([Decimal(10) ** 37], pa.decimal128(38, 0)),
        pa.array([Decimal(10) ** 60 + Decimal("0.1")], pa.decimal256(70, 1)),
        pa.array(["a", None, "", 'x\ny,"ü"', "null", "007", "NaN"]),
        pa.array(["a", None, ""], pa.large_string()),
        pa.array(["a", None, ""], pa.string_view()),
        pa.array([b"a", None, "ü".encode()]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([b"ab", None], pa.large_binary()),
        pa.array([b"ab", None], pa.binary_view()),
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.array([7, None, 8]).dictionary_encode(),
        pa.nulls(3),
        *(pa.array([0, -1, None, (1 << 63) - 1], pa.duration(unit)) for unit in UNITS),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_values_are_what_they_were(tmp_path, array, ending):
    path = written(tmp_path, array, ending)
    if ending == ".parquet":
        back = pq.read_table(path)["x"].combine_chunks()
        back = back.dictionary_decode() if pa.types.is_dictionary(back.type) else back
        if pa.types.is_duration(array.type):
            back, array = back.cast(pa.int64()), array.cast(pa.int64())
        assert back.to_pylist() == array.to_pylist()
        return
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if pa.types.is_duration(array.type):
        plain = plain.cast(pa.int64())
    expected = plain.to_pylist()
    found = texts_of(path)
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        number = float if pa.types.is_floating(array.type) else Decimal
        found = [each if each is None else number(each) for each in found]
        narrow = array.type if pa.types.is_floating(array.type) else None
        found = found if narrow is None else pa.array(found, pa.float64()).cast(narrow).to_pylist()
    elif ending == ".csv":
        shown = {True: "true", False: "false"} if pa.types.is_boolean(array.type) else {}
        expected = [each if each is None else shown.get(each, each) for each in expected]
        expected = [
            each if each is None or isinstance(each, bytes) else str(each) for each in expected
        ]
    expected = [each.decode() if isinstance(each, bytes) else each for each in expected]
    assert found == expected


def test_floats_that_are_no_numbers(tmp_path, capsys):
    array = pa.array([NAN, INF, None, -INF, 1.0])
    assert cells(written(tmp_path, array, ".csv")) == ["nan", "inf", None, "-inf", "1"]
    back = pq.read_table(written(tmp_path, array, ".parquet"))["x"].to_pylist()
    assert str(back) == str(array.to_pylist())
    assert capsys.readouterr().err == ""
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        assert objects(written(tmp_path, array.cast(kind), ".json")) == [*[None] * 4, 1.0]
        said = capsys.readouterr().err
        assert "column 'x' has 3 values that are NaN or infinite, which JSON has not" in said
    nested = pa.array([[1.0, NAN], None, [], [INF]])
    assert objects(written(tmp_path, nested, ".json")) == [[1.0, None], None, [], [None]]
    assert "column 'x' has 2 values that are NaN" in capsys.readouterr().err


NESTED = st.recursive(
    st.sampled_from([pa.int64(), pa.string(), pa.timestamp("us"), pa.time64("ns")]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(pa.list_view),
        inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.tuples(inner, inner).map(lambda two: pa.struct([("a", two[0]), ("b", two[1])])),
    ),
    max_leaves=3,
)


@st.composite
def nested_values(draw, kind, depth=0):
    """Return a value of a type, for Arrow, and what it is in JSON."""
    if draw(st.booleans()) and draw(st.booleans()):
        return None, None
    types = pa.types
    if types.is_struct(kind):
        a, b = (draw(nested_values(kind.field(n).type, depth + 1)) for n in (0, 1))
        return {"a": a[0], "b": b[0]}, {"a": a[1], "b": b[1]}
    if types.is_map(kind):
        items = draw(st.lists(nested_values(kind.item_type, depth + 1), max_size=2))
        named = [(str(n), *item) for n, item in enumerate(items)]
        return [(n, v) for n, v, _ in named], [{"key": n, "value": v} for n, _, v in named]
    if hasattr(kind, "value_type"):
        size = {"min_size": 2, "max_size": 2} if types.is_fixed_size_list(kind) else {"max_size": 2}
        items = draw(st.lists(nested_values(kind.value_type, depth + 1), **size))
        return [v for v, _ in items], [v for _, v in items]
    number = draw(st.integers(0, 999_999))
    if types.is_timestamp(kind):
        return number, f"1970-01-01 00:00:00.{number:06}"
    if types.is_time(kind):
        return number, f"00:00:00.{number:09}"
    return (number, number) if types.is_integer(kind) else (str(number), str(number))


@settings(max_examples=60)
@given(st.data())
def test_lists_structures_and_maps_are_those_of_json(tmp_path_factory, data):
    kind = data.draw(NESTED)
    rows = data.draw(st.lists(nested_values(kind), max_size=5))
    array = pa.array([value for value, _ in rows], kind)
    path = written(tmp_path_factory.mktemp("nested"), array, ".json")
    assert objects(path) == [value for _, value in rows]


FAR = 253_402_300_800 * 100


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([[], None, [0, 1], [86_400, 0]], pa.list_(pa.time32("s"))), 3),
        (pa.array([{"a": [1]}, {"a": None}, {"a": [90_000]}],
                  pa.struct([("a", pa.list_(pa.time32("s")))])), 2),
        (pa.array([b"a", None, b"\xff\x00"]), 2),
        (pa.array([[b"a"], [None, b"\xff"]]), 1),
        (pa.array([[("k", b"\xff")]], pa.map_(pa.string(), pa.binary())), 0),
    ],
)  # fmt: skip
def test_the_row_of_a_value_is_named_however_deep_it_is(tmp_path, array, row):
    with pytest.raises(UsageError, match=rf"Column 'x' .* as JSON: row {row} \(the first is 0\)"):
        written(tmp_path, array, ".json")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "endings"),
    [
        (pa.list_(pa.int64()), [".csv"]),
        (pa.struct([("a", pa.int64())]), [".csv"]),
        (pa.map_(pa.string(), pa.int64()), [".csv"]),
        (pa.month_day_nano_interval(), FORMATS),
        (pa.dense_union([pa.field("a", pa.int64())]), FORMATS),
        (pa.struct([("a", pa.int64()), ("a", pa.int64())]), [".csv", ".json"]),
        (pa.decimal128(5, -2), [".parquet"]),
        (pa.run_end_encoded(pa.int32(), pa.int64()), [".parquet"]),
    ],
    ids=str,
)
def test_a_type_that_a_format_lacks_is_refused_before_a_row_is_asked_for(tmp_path, kind, endings):
    def rows():
        raise AssertionError("asked for rows")
        yield

    schema = pa.schema([("good", pa.int64()), ("bad", kind)])
    for ending in endings:
        with pytest.raises(UsageError, match="Column 'bad' of type .* cannot be written as"):
            write_table(rows(), schema, tmp_path / f"t{ending}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_seconds_that_parquet_cannot_hold_are_named(tmp_path, sign):
    seconds = pa.array([0, None, sign * ((1 << 63) - 1), 5], pa.timestamp("s"))
    table = pa.table({"a": [1, 2, 3, 4], "at": seconds})
    with pytest.raises(
        UsageError, match=r"Column 'at' .* row 2 \(the first is 0\) has a value bey"
    ):
        write_table(table.to_batches(max_chunksize=2), table.schema, tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []


def test_uuids_and_other_types_of_extensions(tmp_path):
    keys = [uuid.UUID(int=7), None]
    array = pa.array([key and key.bytes for key in keys], pa.binary(16)).cast(pa.uuid())
    assert cells(written(tmp_path, array, ".csv")) == [str(keys[0]), None]
    assert objects(written(tmp_path, array, ".json")) == [str(keys[0]), None]
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    assert objects(written(tmp_path, flags, ".json")) == [1, 0]


def test_columns_of_one_name_are_no_json(tmp_path):
    table = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(
        UsageError, match="several columns called 'x', of which a JSON object holds"
    ):
        write_table(table.to_batches(), table.schema, tmp_path / "t.json")


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_commands_and_pipelines_write_the_same(tmp_path, capsys, ending):
    far = pa.array([FAR, 0], pa.timestamp("s", "Europe/Berlin"))
    table = pa.table({"t": [1, 2], "at": far, "x": pa.array([NAN, 1.0])})
    pq.write_table(table, tmp_path / "l.parquet")
    pq.write_table(table.select(["t"]), tmp_path / "r.parquet")
    inputs = ["--left", str(tmp_path / "l.parquet"), "--right", str(tmp_path / "r.parquet")]
    asof = ["asof", *inputs, "--time", "t"]
    join = [
        "join",
        *inputs,
        "--time",
        "t",
        "--on",
        "t",
        "--within",
        "1",
        "--device",
        "software:",
    ]
    times = []
    for number, asked in enumerate((asof, join)):
        path = tmp_path / f"{number}{ending}"
        assert main([*asked, "--output", str(path)]) == 0
        times.append(path.read_text())
    Pipeline.of_parquet(tmp_path / "l.parquet").write(tmp_path / f"2{ending}")
    times.append((tmp_path / f"2{ending}").read_text())
    for text in times:
        assert "+804969-12-04 00:00:00.000Z" in text
        assert "1970-01-01 00:00:00.000Z" in text
    assert ("NaN" in capsys.readouterr().err) == (ending == ".json")


def test_a_duration_is_a_number_of_its_unit(tmp_path):
    array = pa.array([timedelta(seconds=90)], pa.duration("ms"))
    assert cells(written(tmp_path, array, ".csv")) == ["90000"]
    assert objects(written(tmp_path, array, ".json")) == [90000]


def test_narrow_numbers_are_split_in_parquet_and_later_wide_ones_are_still_right(tmp_path):
    """The first batch decides the encoding of a column, whatever follows."""
    whole = [*range(7), 1 << 62, -(1 << 63), (1 << 63) - 1, None]
    names = ["narrow", "wide", "text", "twice", "twice"]
    table = pa.Table.from_arrays(
        [
            pa.array(whole, pa.timestamp("us")), pa.array(whole[::-1], pa.int64()),
            pa.array([str(value) for value in whole]), pa.array(range(11)), pa.array(["a"] * 11),
        ],
        names,
    )  # fmt: skip
    path = tmp_path / "t.parquet"
    assert write_table(table.to_batches(max_chunksize=4), table.schema, path) == 11
    group = pq.ParquetFile(path).metadata.row_group(0)
    split = ["BYTE_STREAM_SPLIT" in group.column(at).encodings for at in range(5)]
    assert split == [True, False, False, False, False]
    back = pq.ParquetFile(path).read()
    assert back.num_columns == 5
    assert all(one.equals(other) for one, other in zip(back.columns, table.columns, strict=True))


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json"])
def test_no_rows_of_columns_without_nulls_are_written(tmp_path, ending):
    schema = pa.schema([pa.field("t", pa.int64(), nullable=False), pa.field("x", pa.string())])
    assert write_table(iter([]), schema, tmp_path / f"out{ending}") == 0
    if ending == ".parquet":
        assert pq.read_schema(tmp_path / "out.parquet").equals(schema)
