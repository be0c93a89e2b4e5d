# SPDX-License-Identifier: Apache-2.0

from hypothesis import given, settings
import pyarrow as pa
import pytest

from host.operators.aggregate import WindowAggregation
from host.operators.verification import compare_with_reference
from host.query.queries import AggregateQuery
from tests.host.operators.by_rows import SCHEMA, tables

ASKED = AggregateQuery(
    time="time", window=6, advance=2, on=("item", "weight"),
    aggregates={"n": "count", "total": "sum:price", "mean": "mean:weight", "low": "min:weight",
                "high": "max:price"},
)  # fmt: skip


def result_of(table, asked=ASKED):
    work = WindowAggregation(SCHEMA, asked)
    for batch in table.to_batches():
        work.more_rows(batch)
    return pa.Table.from_batches([work.last_rows()])


@settings(max_examples=40)
@given(tables())
def test_right_answers_agree_with_the_reference_operator(table):
    result = result_of(table)
    assert compare_with_reference(table, ASKED, result) == (
        True,
        f"all {result.num_rows} results agree with the reference operator",
    )


def changed(result, name, values):
    return result.set_column(result.schema.get_field_index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda r: r.slice(1), "1 results are missing, such as the one of (-4, 1, 0.5)"),
        (lambda r: pa.concat_tables([r, r.slice(0, 1)]), "1 results come twice"),
        (
            lambda r: changed(r, "n", [1, 1, 1, 9, 1, 1]),
            "'n' of (4, 2, 0.25) is 9, but should be 1",
        ),
        (
            lambda r: changed(r, "mean", [0.5, 0.5, 0.5, 0.25, 0.25, 0.26]),
            "'mean' of (8, 2, 0.25) is 0.26, but should be 0.25",
        ),
        (
            lambda r: pa.concat_tables([r, changed(r.slice(0, 1), "window_start", [90])]),
            "1 results are too many, such as that of (90, 1, 0.5)",
        ),
    ],
)
def test_wrong_answers_are_named(change, found):
    rows = [
        {"time": 0, "item": 1, "weight": 0.5, "price": 3},
        {"time": 8, "item": 2, "weight": 0.25, "price": 4},
    ]
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert compare_with_reference(table, ASKED, change(result_of(table))) == (False, found)
