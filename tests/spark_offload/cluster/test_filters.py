# SPDX-License-Identifier: Apache-2.0
"""Filters that tasks apply to files leave the rows that a plain loop leaves, and Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isnan, nan
import operator
import random

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
import pytest

from spark_offload.partitioning.stored import StoredRows, stored_rows

COLUMNS = {
    "flag": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 0, 3]),
    "short": (pa.int16(), [-300, 0, 3]),
    "whole": (pa.int32(), [-70_000, 0, 3]),
    "long": (pa.int64(), [-(1 << 40), 0, 3]),
    "single": (pa.float32(), [-inf, -0.0, 0.0, 0.5, nan]),
    "double": (pa.float64(), [-1e300, -0.0, 0.0, 0.5, nan]),
    "price": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("3.00")]),
    "text": (pa.string(), ["", "a", "B", "\u00e9", "it's"]),
    "bytes": (pa.binary(), [b"", b"\x01", b"\xff\x00"]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2020, 2, 29)]),
    "instant": (pa.timestamp("us", "UTC"), [datetime(1969, 1, 1, 5, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [datetime(1969, 1, 1, 5), datetime(2020, 1, 1, 0, 0, 0, 7)]),
}
KEYS = {"word": ["a", "b c", "it's", None], "number": [-4, 12, None]}
NUMBERS = {"tiny", "short", "whole", "long", "single", "double", "price", "number"}
SIGNS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def literal(value):
    """Return a value as Spark reads it in SQL."""
    if value is None or isinstance(value, (bool, int)):
        return "null" if value is None else str(value)
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, Decimal):
        return f"{value}BD"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP{'' if value.tzinfo else '_NTZ'}'{value}'"
    return f"DATE'{value}'" if isinstance(value, date) else '"' + value + '"'


def leaf(rng):
    """Return a condition on one column: its text, and a loop's answer for a row."""
    names = [*COLUMNS, *KEYS]
    name = rng.choice(names)
    values = KEYS[name] if name in KEYS else COLUMNS[name][1]
    form = rng.choice(["=", "!=", "<", ">=", ">", "<=", "in", "between", "null", "known"])
    if form in ("null", "known"):
        text = f"{name} is {'not ' * (form == 'known')}null"
        return text, lambda row: (row[name] is None) == (form == "null")
    if name == "flag":
        return ("flag", lambda row: row["flag"]) if form == "in" else (
            "flag = false", lambda row: None if row["flag"] is None else not row["flag"]
        )  # fmt: skip
    known = [value for value in values if value == value and value is not None]
    if name in NUMBERS and form not in ("in", "between") and name not in ("single", "double"):
        known += [2, Decimal("2.5")] if name != "number" else [2]
    chosen = [rng.choice([*known, *known, None]) for _ in range(3)]
    if form == "in":
        found = [compared("=", name, value) for value in chosen]
        return f"{name} in ({', '.join(map(literal, chosen))})", joined(any_of, found)
    if form == "between":
        low, high = chosen[:2]
        ends = [compared(">=", name, low), compared("<=", name, high)]
        return f"{name} between {literal(low)} and {literal(high)}", joined(all_of, ends)
    text = f"{name} {form} {literal(chosen[0])}"
    if rng.random() < 0.3:
        turned = form.translate(str.maketrans("<>", "><"))
        text = f"{literal(chosen[0])} {turned} {name}"
    return text, compared(form, name, chosen[0])


def compared(sign, name, value):
    def found(row):
        if row[name] is None or value is None:
            return None
        own, other = ((isinstance(v, float) and isnan(v), v) for v in (row[name], value))
        if own[0]:  # NaN is greater than all that there is to compare with
            return sign in ("!=", ">", ">=")
        return SIGNS[sign](own[1], other[1])

    return found


def joined(how, parts):
    return lambda row: how([part(row) for part in parts])


def any_of(found):
    return True if True in found else None if None in found else False


def all_of(found):
    return False if False in found else None if None in found else True


def condition(rng, depth):
    if not depth or rng.random() < 0.3:
        return leaf(rng)
    (one, first), (other, second) = (condition(rng, depth - 1) for _ in range(2))
    kind = rng.choice(["and", "or", "not"])
    if kind == "not":
        return f"not ({one})", lambda row: None if first(row) is None else not first(row)
    how = all_of if kind == "and" else any_of
    return f"({one}) {kind} ({other})", joined(how, [first, second])


def written(folder, rng):
    """Write files into folders with keys; return their rows."""
    rows = []
    for word in KEYS["word"]:
        for number in KEYS["number"]:
            names = [
                f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else value}"
                for name, value in (("word", word), ("number", number))
            ]
            own = []
            for _ in range(rng.randrange(1, 12)):
                row = {name: rng.choice([None, *values]) for name, (_, values) in COLUMNS.items()}
                own.append({"t": len(rows) + len(own), **row})
            schema = pa.schema(
                [("t", pa.int64()), *((n, kind) for n, (kind, _) in COLUMNS.items())]
            )
            path = folder.joinpath(*names)
            path.mkdir(parents=True)
            table = pa.Table.from_pylist(own, schema)
            pq.write_table(table, path / "rows.parquet", row_group_size=5)
            rows += [{**row, "word": word, "number": number} for row in own]
    return rows


@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.long)])
def test_rows_are_those_of_a_plain_loop_and_of_spark(spark, tmp_path, count):
    rng = random.Random(7)
    rows = written(tmp_path, rng)
    frame = spark.read.parquet(str(tmp_path))
    assert frame.schema["number"].dataType.simpleString() == "int"
    conditions = [condition(rng, 2) for _ in range(count)]
    answers = frame.select("t", *(F.expr(text) for text, _ in conditions)).collect()
    by_spark = {row[0]: row[1:] for row in answers}
    for place, (text, loop) in enumerate(conditions):
        told = {row["t"]: loop(row) for row in rows}
        assert told == {t: found[place] for t, found in by_spark.items()}, text
        found = stored_rows(frame.where(text), ["word", "t", "number"], "t", 1)
        assert isinstance(found, StoredRows), f"{text}: {found}"
        batches = found.batches(iter([pa.record_batch({"id": range(len(found.parts))})]))
        read = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        assert sorted(read, key=lambda row: row[1]) == [
            (row["word"], row["t"], row["number"]) for row in rows if told[row["t"]]
        ], text


def test_what_arrow_may_compare_otherwise_is_left_to_spark(spark, tmp_path):
    written(tmp_path, random.Random(1))
    frame = spark.read.parquet(str(tmp_path))
    for text in (
        "double > double('NaN')",
        "flag < true",
        "long > 0.5D",
        "collate(text, 'UTF8_LCASE') = 'a'",
        "text like 'a%'",
        "text > 3",
        "t = (select max(id) from range(9))",
        f"t in ({', '.join(map(str, range(200)))})",
    ):
        found = stored_rows(frame.where(text), ["t"], "t", 1)
        assert "Spark alone knows" in found, text
