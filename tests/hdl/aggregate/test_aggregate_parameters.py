# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from hdl.windowed.description import OperatorDescription
from host.operators.windowed import Field, Key, WindowedOperator
from tests.hdl.aggregate.operators import aggregate_parameters, operator


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cores": 0}, "Parameter 'cores' must be an integer of at least 1, not 0"),
        ({"fan_in": 1}, "Parameter 'fan_in' must be an integer of at least 2, not 1"),
        (
            {"keys": 17},
            "Parameter 'keys' must be from 1, one for each core, to 16, what the 4 bits",
        ),
        ({"cores": 4, "keys": 3}, "Parameter 'keys' must be from 4, one for each core, to 16"),
        ({"panes": 3}, "Parameter 'panes' must be at least 4, the panes of a window of operator"),
        ({"pane_bits": 15}, "Parameter 'pane_bits' must be from 1 to 14, the width of the widest"),
        ({"pane_bits": 0}, "Parameter 'pane_bits' must be from 1 to 14"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_rule(changes, message):
    with pytest.raises(ValueError, match=message):
        aggregate_parameters(operator("sum", "min"), **changes)


def test_an_operator_that_is_no_aggregate_is_refused():
    forward = WindowedOperator(
        name="forward", size=1, advance=1, fields=[Field("v")], keys=[Key(1)], instances="single"
    )
    with pytest.raises(ValueError, match="'forward' must be an aggregate, with reductions; it is"):
        aggregate_parameters(forward)


@pytest.mark.parametrize("parameters", AGGREGATE_PRESETS.values(), ids=AGGREGATE_PRESETS)
def test_presets_survive_their_document_and_are_operators_of_the_host(parameters):
    values = json.loads(json.dumps(parameters.to_dict()))
    assert AggregateParameters.from_dict(values) == parameters
    assert WindowedOperator.from_dict(values["operator"]).to_dict() == values["operator"]


def test_an_operator_survives_the_document_of_the_parameters():
    described = operator("sum", "count", "min", "reduce", size=12, advance=8)
    parameters = aggregate_parameters(described)
    assert parameters.to_dict()["operator"] == described.to_dict()
    assert OperatorDescription.from_dict(described.to_dict()) == parameters.operator


def test_an_unknown_parameter_is_refused():
    values = {**AGGREGATE_PRESETS["tiny-aggregate"].to_dict(), "lanes": 2}
    with pytest.raises(ValueError, match=r"has no parameters \['lanes'\]"):
        AggregateParameters.from_dict(values)
