# SPDX-License-Identifier: Apache-2.0
"""An aggregation on the host or on an accelerator, which is closed whatever happens."""

from hypothesis import HealthCheck, given, settings
import numpy as np
import pytest

from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.windowed.description import OperatorDescription
from host.devices.waiting import Work
from host.errors import AcceleratorLimitError
from host.operators import aggregate
from host.operators.aggregate import QueryLanes, WindowAggregation
from host.operators.states import ROWS, AggregateStates
from host.operators.windowed import Field, Reduction, WindowedOperator
from tests.host.operators.device_tables import SCHEMA, agree, cases, query
from tests.host.operators.small_aggregate import PARAMETERS, ModelDevice, manifest_of


@pytest.fixture
def opened(monkeypatch):
    """Devices that have been opened and not closed."""
    devices = []

    class Noted(ModelDevice):
        def __init__(self, uri):
            super().__init__()
            devices.append(self)

        def close(self):
            devices.remove(self)

    monkeypatch.setattr(aggregate, "open_aggregate", Noted)
    return devices


def test_a_device_is_open_as_long_as_its_aggregation(opened):
    with WindowAggregation(SCHEMA, query(), "sim:small") as doing:
        assert len(opened) == 1
        assert doing.last_rows().num_rows == 0
        assert doing.device_work.cycles == 0
    assert opened == []
    doing.close()


def test_a_query_that_does_not_suit_leaves_no_device_open(opened):
    with pytest.raises(AcceleratorLimitError, match="'weight' has floats"):
        WindowAggregation(SCHEMA, query(aggregates={"w": "sum:weight"}), "sim:small")
    assert opened == []


def test_the_host_needs_no_device(opened):
    with WindowAggregation(SCHEMA, query()) as doing:
        assert (doing.device_work, opened) == (Work(), [])


def test_what_a_manifest_cannot_do_is_known_before_a_device_is_opened():
    manifest = manifest_of(PARAMETERS)
    WindowAggregation(SCHEMA, query()).lanes(manifest)
    with pytest.raises(AcceleratorLimitError, match="have 7 panes, but those .* at most 6"):
        WindowAggregation(SCHEMA, query(window=7, advance=1)).lanes(manifest)
    with pytest.raises(AcceleratorLimitError, match="'weight' has floats"):
        WindowAggregation(SCHEMA, query(aggregates={"w": "max:weight"})).lanes(manifest)


@pytest.fixture
def generated(monkeypatch):
    """Let models answer in the place of the accelerators that the kit generates for queries."""
    documents = []

    def described(document):
        documents[:] = [WindowedOperator.from_dict(document)]
        return "generated"

    def opened(uri):
        assert uri == "sim:generated"
        operator = documents[-1]
        parameters = AggregateParameters(operator=OperatorDescription.from_dict(operator.to_dict()))
        return ModelDevice(operator, parameters)

    monkeypatch.setattr(aggregate, "operator_bundle", described)
    monkeypatch.setattr(aggregate, "open_aggregate", opened)
    return documents


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_an_accelerator_that_is_generated_for_a_query_has_the_answer(generated, case):
    """Of any number of key columns, and with nulls in all columns."""
    agree("sim:", case)
    asked = case[0]
    assert bool(generated[-1].keys) == bool(asked.on)


def test_what_no_accelerator_computes_is_known_before_one_is_built(generated):
    with pytest.raises(AcceleratorLimitError, match="'weight' has floats"):
        WindowAggregation(SCHEMA, query(aggregates={"w": "max:weight"}), "sim:")
    assert generated == []


def test_a_narrow_field_is_left_to_numbers_of_values():
    """A value went to a field of one bit that stood before those of its width."""
    fields = [Field("known", 1, signed=False), Field("v", 16)]
    operator = WindowedOperator(
        name="two", size=1, advance=1, fields=fields,
        reductions=[Reduction("known_sum", "sum", "known"), Reduction("v_sum", "sum", "v")],
    )  # fmt: skip
    values = AggregateStates(SCHEMA, query(aggregates={"s": "sum:price"}).aggregates)
    lanes = QueryLanes(operator, values, keyed=False)
    numbers = np.array([-128, 127, 5])
    known = np.array([1, 1, 1])
    given = {"rows": known, "sum": numbers, "count": known}
    of_states = [given["rows" if state == ROWS else state[0]] for state in values.states]
    columns = lanes.columns(of_states)
    assert columns["v"].tolist() == numbers.tolist()
    assert columns["known"].tolist() == known.tolist()
