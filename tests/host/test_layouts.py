# SPDX-License-Identifier: Apache-2.0
"""Columns of layouts in which Arrow takes no rows are joined as the values that they hold."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host import UsageError, aggregate, asof_join, join, join_many

TEXT = pa.string_view()
TEXTS = ["a", "b", "a", None, "c", "a"]
PLAIN = {
    "text": pa.array(TEXTS),
    "bytes": pa.array(TEXTS).cast(pa.binary()),
    "categories": pa.array(TEXTS),
    "runs": pa.array(TEXTS),
    "number runs": pa.array([1, 1, 2, 2, None, 3]),
    "moment runs": pa.array([1, 1, 2, 2, None, 3]).cast(pa.timestamp("us", "UTC")),
    "list": pa.array([["a"], None, [None, "b"], [], ["a"], ["c"]]),
    "large list": pa.array([["a"], None, [None, "b"], [], ["a"], ["c"]]),
    "pair": pa.array([["a", "b"], None, [None, "b"], ["x", "y"], ["a", "b"], ["c", "c"]]),
    "struct": pa.array([{"a": "x", "b": [1]}, None, *({"a": one, "b": None} for one in "abca")]),
    "map": pa.array([[("a", "b")], None, [], *([(one, None)] for one in "abc")],
                    pa.map_(pa.string(), pa.string())),
    "deep": pa.array([{"a": [{"b": one}]} for one in TEXTS]),
}  # fmt: skip
LAYOUTS = {
    "text": TEXT,
    "bytes": pa.binary_view(),
    "list": pa.list_(TEXT),
    "large list": pa.large_list(TEXT),
    "pair": pa.list_(TEXT, 2),
    "struct": pa.struct([("a", TEXT), ("b", pa.list_(pa.int64()))]),
    "map": pa.map_(TEXT, TEXT),
    "deep": pa.struct([("a", pa.list_(pa.struct([("b", TEXT)])))]),
}
KEYS = ["text", "bytes", "categories", "runs", "number runs", "moment runs"]


def laid_out(name):
    """The values of a name in its layout."""
    if name.endswith("runs"):
        return pc.run_end_encode(PLAIN[name])
    if name == "categories":
        plain = PLAIN[name].dictionary_encode()
        return pa.DictionaryArray.from_arrays(plain.indices, plain.dictionary.cast(TEXT))
    return pa.array(PLAIN[name].to_pylist(), LAYOUTS[name])


def readers(table):
    """The table twice, as readers of short batches, some of them without rows."""
    batches = [one for batch in table.to_batches(max_chunksize=2) for one in (batch, batch[:0])]
    return [pa.RecordBatchReader.from_batches(table.schema, batches) for _ in range(2)]


def answers(table, key):
    """What is joined of a table and itself, by path."""
    asked = {"time": "t", "on": key}
    count = {"time": "t", "window": 4, "on": key, "aggregates": {"n": "count"}}
    return {
        "join": join(table, table, within=3, how="full", **asked),
        "join of readers": join(*readers(table), within=3, how="full", sorted=True, **asked),
        "asof": asof_join(table, table, direction="nearest", **asked),
        "asof of readers": asof_join(*readers(table), sorted=True, **asked),
        "many": join_many({"a": table, "b": table, "c": table}, within=3, **asked),
        "aggregate": aggregate(table, **count),
        "aggregate of readers": aggregate(readers(table)[0], sorted=True, **count),
        "aggregate of a column": aggregate(
            table.append_column("k", pa.array([0] * 6)),
            **count | {"on": "k", "aggregates": {"n": f"count:{key}"}},
        ),
        "condition": join(table, table, time="t", within=3, where=f"l[{key!r}] == r[{key!r}]"),
    }


@pytest.mark.parametrize("name", PLAIN)
def test_a_layout_is_joined_as_its_values(name):
    times = {"t": [1, 2, 2, 4, 5, 9]}
    key = name if name in KEYS else "t"
    found = answers(pa.table(times | {name: laid_out(name)}), key)
    for path, expected in answers(pa.table(times | {name: PLAIN[name]}), key).items():
        assert found[path].to_pylist() == expected.to_pylist(), path
        found[path].validate(full=True)


@pytest.mark.parametrize("name", KEYS)
def test_a_table_without_chunks_has_no_rows(name):
    table = pa.table({"t": [1, 2, 2, 4, 5, 9], name: laid_out(name)})
    empty = table.schema.empty_table()
    for one, other in ((empty, empty), (table, empty), (empty, table)):
        assert join(one, other, time="t", on=name, within=3).num_rows == 0
        assert asof_join(one, other, time="t", on=name).num_rows == one.num_rows


@pytest.mark.parametrize(
    "values", [pa.date64(), pa.duration("us"), pa.timestamp("ms", "UTC"), pa.time32("s")], ids=str
)
def test_a_table_without_chunks_may_have_categories_of_any_type(values):
    empty = pa.schema({"t": pa.int64(), "k": pa.dictionary(pa.int8(), values)}).empty_table()
    assert join(empty, empty, time="t", on="k", within=3, how="full").num_rows == 0


def test_a_layout_that_arrow_does_not_decode_is_refused_by_name():
    runs = pc.run_end_encode(pa.array([1, 1, 2]))
    table = pa.table({"t": [1, 2, 3], "p": pa.StructArray.from_arrays([runs], ["r"])})
    for rows in (table, table.to_reader()):
        with pytest.raises(UsageError, match=r"'p' is struct<r: run_end.*cast it to struct<r: int"):
            join(rows, rows, time="t", within=1)
