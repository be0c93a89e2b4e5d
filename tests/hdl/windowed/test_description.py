# SPDX-License-Identifier: Apache-2.0

from dataclasses import fields
import json

import pytest

from hdl.parameters import KeyField
from hdl.windowed.description import (
    KINDS,
    OperatorDescription,
    load_circuit,
    load_operator,
)
from tests.host.operators.operators import ALL, EVERYTHING, SEVERAL_KEYS

OWN = "tests.host.operators.operators:"


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_generator_reads_what_the_host_describes(operator):
    document = json.loads(json.dumps(operator.to_dict()))
    description = OperatorDescription.from_dict(document)
    names = {field.name for field in fields(OperatorDescription)}
    assert set(document) <= names, "a part that the generator does not know"
    assert description.kind == operator.kind
    assert [vars(field) for field in description.fields] == document["fields"]
    assert [rule.name for rule in description.outputs] == [one.name for one in operator.outputs]
    assert {operator.kind for operator in ALL} == set(KINDS)


def test_widths_are_the_hosts():
    description = load_operator(f"{OWN}SEVERAL_KEYS")
    assert description == OperatorDescription.from_dict(SEVERAL_KEYS.to_dict())
    assert description.key_fields == (
        KeyField(name="key0", bits=2, signed=False),
        KeyField(name="key1", bits=1, signed=False),
    )
    assert (description.key_bits, description.state_bits, description.panes) == (3, 33 + 2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "map"},
            "Operator must be one of aggregate, join, join_aggregate, forward, not map",
        ),
        ({"advance": 11}, "Advance of a window must be from 1 to its size 10, not 11"),
        ({"keys": [{"parts": ["y"]}]}, "reads ['y']; it may read item, price, timestamp"),
        ({"keys": [{"parts": ["item"], "when": "l.x"}]}, "reads ['l.x']; it may read item"),
        ({"having": "price"}, "reads ['price']; it may read end, item, least, most, n, parity"),
        ({"having": "n +"}, "is no Python expression"),
        (
            {"match": "l.price > r.price"},
            "reads ['price']; it may read l.item, l.price, l.timestamp",
        ),
        ({"colour": "red"}, "The document is no description of an operator"),
        ({"reductions": [3]}, "The document is no description of an operator"),
    ],
)
def test_documents_that_contradict_themselves_are_refused(change, message):
    with pytest.raises(ValueError) as caught:
        OperatorDescription.from_dict(EVERYTHING.to_dict() | change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("operators", "An operator is named 'module:NAME' or 'FILE.py:NAME', not 'operators'"),
        ("gone.py", "There is no file 'gone.py' that describes an operator"),
        ("no.such:X", "Operator 'no.such:X' cannot be imported (No module named 'no')"),
        (f"{OWN}GONE", "has no attribute 'GONE'); put its module on PYTHONPATH"),
        (f"{OWN}ITEM.name", "cannot be imported"),
        ("json:dumps", "Operator 'json:dumps' has no to_dict()"),
    ],
)
def test_operators_that_cannot_be_loaded_are_refused(reference, message):
    with pytest.raises(ValueError) as caught:
        load_operator(reference)
    assert message in str(caught.value)


def test_an_operator_is_loaded_from_a_file(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("from tests.host.operators.operators import EVERYTHING, JOIN, KEYLESS\n")
    assert load_operator(f"{file}:KEYLESS").name == "keyless"
    with pytest.raises(ValueError, match=r"must have one operator.*it has: EVERYTHING, JOIN, KEY"):
        load_operator(str(file))
    with pytest.raises(ValueError, match="has no operator 'OTHER'"):
        load_operator(f"{file}:OTHER")
    file.write_text("1 / 0")
    with pytest.raises(ValueError, match="cannot be run: ZeroDivisionError"):
        load_operator(str(file))


def test_a_circuit_computes_what_the_host_leaves_to_it():
    reduced = load_circuit(f"{OWN}EVERYTHING")
    assert "having" not in reduced
    assert [one["name"] for one in reduced["outputs"]] == [
        one["name"] for one in reduced["reductions"]
    ]
    joined = load_circuit(f"{OWN}JOIN")
    assert (joined["kind"], joined["cores"]) == ("join", 4)
    assert [(key["name"], key["bits"]) for key in joined["keys"]] == [("x", 6)]
    keyed = load_circuit(f"{OWN}JOIN_AGGREGATE")
    assert [key["name"] for key in keyed["keys"]] == ["x", "key"]
    forwarded = load_circuit(f"{OWN}FORWARD")
    assert (forwarded["kind"], forwarded["size"]) == ("aggregate", 1)
