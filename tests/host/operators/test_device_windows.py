# SPDX-License-Identifier: Apache-2.0
"""Windows that an accelerator keeps, against those of the host; the accelerator is a model."""

from hypothesis import given, settings
import pyarrow as pa
import pytest

from host.devices import Exchange
from host.devices.waiting import Deadline
from host.errors import AcceleratorLimitError, DeviceError, DeviceTimeoutError
from host.operators.aggregate import WindowAggregation
from host.operators.windowed import Field, Key, Output, Reduction
from host.protocol.bit_fields import pack_field
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.host.operators.device_tables import (
    BEYOND,
    SCHEMA,
    agree,
    agree_going_on,
    cases,
    cases_beyond,
    query,
)
from tests.host.operators.small_aggregate import ModelDevice


def model(**changes):
    """A model of an accelerator for another operator."""
    described = operator(**changes)
    return ModelDevice(described, aggregate_parameters(described))


def batch(*rows, schema=SCHEMA):
    return pa.RecordBatch.from_pylist([{"time": 0, "item": 1, **row} for row in rows], schema)


def refused(device, asked, *batches, schema=SCHEMA, kind=AcceleratorLimitError):
    """Return what is said of rows that a device cannot aggregate."""

    def run():
        with WindowAggregation(schema, asked, device) as work:
            for rows in batches:
                work.more_rows(rows)
            work.last_rows()

    with pytest.raises(kind) as caught:
        run()
    return str(caught.value)


@settings(max_examples=120)
@given(cases())
def test_a_device_gives_the_batches_of_the_host(case):
    agree(ModelDevice(), case)


@pytest.mark.few(1)
@pytest.mark.parametrize("column", BEYOND)
def test_the_host_goes_on_from_the_first_rows_for_which_a_device_has_no_room(column):
    told = []

    @settings(max_examples=60)
    @given(cases_beyond(column))
    def with_rows_of_all_sizes(case):
        before = len(told)
        agree_going_on(ModelDevice(), case, told.append)
        assert len(told) <= before + 1

    with_rows_of_all_sizes()
    said = {"time": "timestamps number", "name": "distinct keys", "price": "'price'"}[column]
    assert any(said in str(refusal) for refusal in told)


def test_one_device_answers_one_query_after_the_other():
    device = ModelDevice(most=3)
    rows = batch({"price": 3}, {"time": 9, "price": None}, {"time": 9, "price": -128})
    for _ in range(2):
        agree(device, (query(4, 2), [rows, rows], "at the end", None))
        agree(device, (query(7, 7, ()), [rows], "in order", None))


def test_rows_in_order_do_not_wait_and_are_checked_first():
    with WindowAggregation(SCHEMA, query(), ModelDevice()) as work:
        work.rows_in_order(batch({"time": 3}, {"time": 20}))
        assert work.held == 0
        work.more_rows(batch({"time": 21}, {"time": 22}))
        assert work.held == 2


def test_operators_of_one_field_serve_columns_without_nulls():
    device = model(reductions=[Reduction("total", "sum", "v"), Reduction("low", "min", "v")])
    asked = query(4, 4, aggregates={"total": "sum:price", "low": "min:price"})
    rows = batch({"price": 3}, {"time": 2, "price": -7})
    agree(device, (asked, [rows], "at the end", None))
    said = refused(device, asked, batch({"price": 3}, {"price": None}))
    assert "Column 'price' has a null, and operator 'small'" in said
    assert "with a sum over one more field" in said


def test_what_the_operator_lacks_is_named():
    device = model(reductions=[Reduction("total", "sum", "v"), Reduction("odd", "max", "v + 1")])
    assert (
        "The query needs max(price), but operator 'small' of the accelerator computes sum(v), "
        "max(v + 1)"
    ) in refused(device, query(4, 4, aggregates={"high": "max:price"}))
    assert "needs count(*)" in refused(
        device, query(4, 4, aggregates={"n": "count", "s": "sum:price"})
    )
    assert "needs sum(price), sum(item)" in refused(
        device, query(4, 4, aggregates={"p": "sum:price", "i": "sum:item"})
    )


def test_an_operator_has_one_field_as_its_key_if_the_query_has_keys():
    total = [Reduction("total", "sum", "v")]
    asked = query(4, 4, aggregates={"s": "sum:price"})
    for keys in ([], [Key("item + 1")], [Key("item", when="v > 0")]):
        assert "one field as their key" in refused(model(reductions=total, keys=keys), asked)


#: What an operator may say of a window's result, beside its reductions, and how it is refused.
RESULTS = [
    ({"having": "total > 3"}, "`having` (total > 3)"),
    ({"outputs": [Output("total", "total", per="n"), Output("n", "n")]}, "(total = total / n, n"),
    ({"outputs": [Output("total", "total * 2"), Output("n", "n")]}, "(total = total * 2, n = n)"),
    ({"outputs": [Output("total", "n"), Output("n", "total")]}, "(total = n, n = total)"),
    ({"outputs": [Output("total", "total")]}, "`outputs` of its own (total = total), but"),
    ({"outputs": [], "having": "n < 2"}, "`outputs` of its own () and `having` (n < 2), but"),
]
REDUCTIONS = [Reduction("total", "sum", "v"), Reduction("n", "count")]


@pytest.mark.parametrize(("changes", "said"), RESULTS)
def test_outputs_and_having_of_an_operator_are_refused(changes, said):
    asked = query(4, 4, aggregates={"total": "sum:price", "n": "count"})
    told = refused(model(reductions=REDUCTIONS, **changes), asked, batch({"price": 1}))
    assert said in told
    assert "generate an accelerator for it without them" in told


def test_outputs_that_are_the_reductions_are_taken():
    outputs = [Output("n", "n"), Output("total", "total")]
    device = model(reductions=REDUCTIONS, outputs=outputs)
    asked = query(4, 4, aggregates={"total": "sum:price", "n": "count"})
    agree(device, (asked, [batch({"price": 3}, {"time": 2, "price": -7})], "at the end", None))


@pytest.mark.parametrize(
    ("asked", "rows", "kind", "said"),
    [
        (
            query(7, 1),
            [{}],
            AcceleratorLimitError,
            "have 7 panes, but those of the accelerator at most 6; choose an advance",
        ),
        (
            query(aggregates={"w": "sum:weight"}),
            [{}],
            AcceleratorLimitError,
            "Column 'weight' has floats, but accelerators reduce integers",
        ),
        (
            query(on=("price",), aggregates={"n": "count"}),
            [{"price": price} for price in range(14)],
            AcceleratorLimitError,
            "at least 14 distinct keys, but the accelerator has room for 13; group by fewer",
        ),
        (query(), [{"price": 128}], AcceleratorLimitError, "with a wider field 'v'"),
        (query(), [{"price": -129}], AcceleratorLimitError, "-129"),
        (
            query(2, 2),
            [{"price": 1}, {"time": 1 << 17, "price": 1}],
            AcceleratorLimitError,
            "span 65537 panes of 2 units of column 'time', but the accelerator's timestamps number",
        ),
    ],
)
def test_rows_that_the_accelerator_cannot_take_are_named(asked, rows, kind, said):
    assert said in refused(ModelDevice(), asked, batch(*rows), kind=kind)


def test_a_late_row_some_of_whose_windows_have_ended_is_named():
    with WindowAggregation(SCHEMA, query(10, 5), ModelDevice()) as work:
        work.rows_until(batch({"time": 1}), 10)
        with pytest.raises(AcceleratorLimitError) as caught:
            work.rows_until(batch({"time": 7}), 11)
    assert "the pane that begins at 'time' 5 came after a watermark" in str(caught.value)
    assert "has ended all panes before 10" in str(caught.value)
    # Before its first row, an accelerator has ended none.
    pieces = [batch(), batch({"time": 7}), batch({"time": 3})]
    agree(ModelDevice(), (query(10, 5), pieces, "until", [10, 11, 11]))


def test_a_fault_is_an_error_by_its_name():
    class Overflowing(ModelDevice):
        def write(self, words, result):
            super().write(words, result)
            if result["kind"] == "STAR":
                pack_field(words, self.manifest.result_word["faults.range"], [1])

    said = refused(Overflowing(), query(), batch({"price": 1}), kind=DeviceError)
    assert "a fault (range) by boundary" in said


def test_the_mark_of_its_own_clear_tells_of_a_fault_and_that_of_the_first_one_does_not():
    """A fault before the first CLEAR is that of whoever used the device before."""

    class Used(ModelDevice):
        left = "range"  # faults up to the next CLEAR

        def write(self, words, result):
            super().write(words, result)
            if self.left and result["kind"] == "MARK":
                pack_field(words, self.manifest.result_word[f"faults.{self.left}"], [1])
                self.left = None

    device = Used()
    with WindowAggregation(SCHEMA, query(4, 2), device) as work:
        assert work.last_rows(batch({"price": 1}, {"time": 9, "price": 2})).num_rows == 4
        device.left = "disorder"
        with pytest.raises(DeviceError, match=r"fault \(disorder\): a tuple was below"):
            work.last_rows(batch({"price": 1}))


def test_a_device_that_does_not_answer_is_given_up():
    class Silent(ModelDevice):
        def exchange(self, words, results, *, cycles, stamps=None):
            return Exchange(0, 0, cycles)

    deadline = Deadline(cycles=3 << 20)
    with (
        WindowAggregation(SCHEMA, query(), Silent(), deadline) as work,
        pytest.raises(DeviceTimeoutError, match="3145728 cycles; .* words 7"),
    ):
        work.rows_in_order(batch({"price": 1}, {"time": 100}))


def test_schemas_are_those_of_the_host():
    asked = query()
    with WindowAggregation(SCHEMA, asked, ModelDevice()) as work:
        assert work.schema == WindowAggregation(SCHEMA, asked).schema
        assert work.last_rows().num_rows == 0


def test_fields_are_unsigned_or_wide_as_the_operator_says():
    fields = [Field("item", 4, signed=False), Field("v", 63, signed=False)]
    device = model(fields=fields, reductions=[Reduction("total", "sum", "v")])
    schema = pa.schema([("time", pa.int32()), ("item", pa.int8()), ("v", pa.uint64())])
    asked = query(4, 4, aggregates={"s": "sum:v"})
    with WindowAggregation(schema, asked, device) as work:
        rows = batch({"v": (1 << 62) - 1}, {"v": 1}, schema=schema)
        work.more_rows(rows)
        assert work.last_rows().column("s").to_pylist() == [1 << 62]
