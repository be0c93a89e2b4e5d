# SPDX-License-Identifier: Apache-2.0

import json

import pytest

from host.errors import ExpressionError, UsageError
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from tests.host.operators.operators import ALL, EVERYTHING, FORWARD, JOIN, KEYLESS, SEVERAL_KEYS

X = Field("x", 8)
PLAIN = {"name": "plain", "size": 4, "advance": 2, "fields": [X]}
COUNT = {"reductions": [Reduction("n", "count")]}


@pytest.mark.parametrize("operator", ALL, ids=lambda operator: operator.name)
def test_description_survives_json(operator):
    text = json.dumps(operator.to_dict())
    assert WindowedOperator.from_dict(json.loads(text)) == operator


def test_description_says_what_it_is():
    assert [operator.kind for operator in ALL] == [
        *["aggregate"] * 3, "join", "join_aggregate", "forward",
    ]  # fmt: skip
    assert [operator.inputs for operator in ALL] == [1, 1, 1, 2, 2, 2]
    assert [operator.pane for operator in ALL] == [2, 2, 5, 1, 3, 1]
    assert EVERYTHING.slides_by == "panes"
    assert KEYLESS.slides_by == "delta"
    assert KEYLESS.key_fields == ()
    assert EVERYTHING.key_fields == (Field("item", 4, signed=False),)
    assert SEVERAL_KEYS.key_fields == (Field("key0", 2, False), Field("key1", 1, False))
    assert JOIN.key_fields == FORWARD.key_fields == (Field("key", 2, signed=False),)
    assert JOIN.match.text == "(l.x - r.x <= 3) & (r.x - l.x <= 3)"


def test_states_are_as_wide_as_their_values_need():
    widths = {one.name: (one.bits, one.signed) for one in EVERYTHING.reductions}
    assert widths == {
        "n": (33, False),
        "total": (45, True),
        "least": (12, True),
        "most": (12, True),
        "seen": (1, False),
        "parity": (3, False),
    }
    wide = Reduction("s", "sum", "x", bits=60)
    (one,) = WindowedOperator(**PLAIN | {"reductions": [wide]}).reductions
    assert (one.bits, one.signed) == (60, True)
    (one,) = WindowedOperator(
        **PLAIN | {"fields": [Field("x", 60)], "reductions": [Reduction("s", "sum", "x")]}
    ).reductions
    assert one.bits == 64
    forced = Reduction("s", "max", "x & 7", signed=True)
    (one,) = WindowedOperator(**PLAIN | {"reductions": [forced]}).reductions
    assert (one.bits, one.signed) == (4, True)


def test_reductions_are_outputs_unless_others_are_given():
    assert [output.name for output in SEVERAL_KEYS.outputs] == ["n", "most"]
    assert [output.name for output in EVERYTHING.outputs] == ["mean", "spread", "state"]


def test_with_checks_again():
    assert KEYLESS.with_(advance=1).pane == 1
    with pytest.raises(UsageError, match="must advance its windows by at most their size, 5"):
        KEYLESS.with_(advance=6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Sum"}, "An operator must be called by a lower-case identifier other than abs"),
        ({"name": "for"}, "not 'for'"),
        ({"size": 0}, "Operator 'plain' must have a window size of at least 1, not 0"),
        ({"advance": True}, "must have a window advance of at least 1, not True"),
        ({"advance": 5}, "so that no tuple falls between two of them; not by 5"),
        ({"instances": "some"}, "must have instances multi or single, not 'some'"),
        ({"fields": []}, "must have at least one field in each input"),
        ({"fields": [X, X]}, "must call each field by a name of its own, not 'x'"),
        ({"keys": [Key("x"), Key(["x", 1])]}, "must have keys of one length, not of [1, 2] parts"),
        ({"keys": [Key("x")], "key_names": ["a", "b"]}, "must name the 1 parts of its keys, not"),
        ({"key_names": ["a"]}, "must name the 0 parts of its keys, not ['a']"),
        ({"match": "l.x > r.x"}, "has `match`, so it must have two inputs: give it `right_fields`"),
        ({"match": "l.x > r.x", "right_fields": [X]}, "when tuples arrive, so it must have inst"),
        ({"right_fields": [X]}, "without `match`, so it has one input: leave out `right_fields`"),
        (
            {
                "match": "l.x > r.x",
                "right_fields": [X],
                "instances": "single",
                "keys": [Key(1)],
                "in_turns": True,
            },
            "can store in turns only as a join, and with keys",
        ),
        ({"reductions": [], "having": "1"}, "has no reductions, so it can have neither"),
        ({"reductions": []}, "gives results when tuples arrive, so it must have instances"),
        (
            {"reductions": [], "instances": "single", "in_turns": True},
            "can store in turns only as a join, and with keys",
        ),
        (
            {
                "reductions": [],
                "instances": "single",
                "right_fields": [X],
                "match": "l.x > r.x",
                "keys": [Key("x")],
                "in_turns": True,
            },
            "must have numbers as keys, which all tuples have, to take turns",
        ),
        (
            {"reductions": [Reduction("n", "count"), Reduction("n", "max", "x")]},
            "must call each part of a key or reduction by a name of its own, not 'n'",
        ),
        (
            {"keys": [Key("x")], "outputs": [Output("x", "n")]},
            "must call each part of a key or output by a name of its own, not 'x'",
        ),
        (
            {"reductions": [Reduction("s", "max", "x", bits=7)]},
            "Reduction 's' has a state from -64 to 63, but a tuple's value 'x' can be from -128",
        ),
        (
            {"reductions": [Reduction("s", "sum", "x", bits=65)]},
            "The state of reduction 's' must have 1 to 64 bits, as it is signed, not 65",
        ),
        (
            {"reductions": [Reduction("s", "reduce", "x", combine="a + 0 * b")]},
            "Reduction 's' must be commutative, but its function 'a + 0 * b' is not: for -7, -2",
        ),
        (
            {"reductions": [Reduction("s", "reduce", "x & 63", combine="a * b + 1 & 63")]},
            "Reduction 's' must be associative, but its function 'a * b + 1 & 63' is not",
        ),
        (
            {"reductions": [Reduction("s", "reduce", "x", combine="a + b")]},
            "Reduction 's' has states from -128 to 127, but 'a + b' of two states can be from -256",
        ),
        (
            {"reductions": [Reduction("s", "reduce", "x", combine="a ^ b", inverse="a + (a ^ b)")]},
            "but 'a + (a ^ b)' of two states can be from -256 to 254; use function 'sum', or limit",
        ),
        (
            {"reductions": [Reduction("s", "reduce", "x", combine="a | b", inverse="a ^ b")]},
            "Reduction 's' must be undone by its inverse",
        ),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(UsageError) as caught:
        WindowedOperator(**PLAIN | COUNT | changes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": [Key("y")]}, "there is no 'y' here; the names are: timestamp, x"),
        ({"keys": [Key("x", when="y")]}, "there is no 'y' here"),
        ({"reductions": [Reduction("s", "sum", "n")]}, "there is no 'n' here"),
        ({"outputs": [Output("m", "x")]}, "there is no 'x' here; the names are: end, n, start"),
        ({"outputs": [Output("m", "n", per="x")]}, "there is no 'x' here"),
        ({"having": "x"}, "there is no 'x' here"),
        (
            {"reductions": [Reduction("s", "reduce", "x", combine="a | c")]},
            "there is no 'c' here; the names are: a, b",
        ),
        (
            {"fields": [Field("x", 60)], "reductions": [Reduction("s", "sum", "x * x")]},
            "which is more than 64 bits",
        ),
        (
            {
                "reductions": [],
                "instances": "single",
                "right_fields": [Field("y")],
                "match": "l.x == r.x",
            },
            "there is no 'r.x' here; the names are: l.timestamp, l.x, r.timestamp, r.y",
        ),
        (
            {
                "reductions": [],
                "instances": "single",
                "right_fields": [Field("y")],
                "keys": [Key("x")],
            },
            "there is no 'x' here; the names are: timestamp, y",
        ),
    ],
)
def test_expressions_read_only_what_there_is(changes, message):
    with pytest.raises(ExpressionError) as caught:
        WindowedOperator(**PLAIN | COUNT | changes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Field("min"), "A field must be called by a lower-case identifier other than abs"),
        (lambda: Field("x", 0), "Field 'x' must have 1 to 64 bits, as it is signed, not 0"),
        (lambda: Field("x", 64, False), "must have 1 to 63 bits, as it is unsigned, not 64"),
        (lambda: Key([]), "A key must have at least one part; leave `keys` out for no key."),
        (lambda: Output("N", "n"), "An output must be called by a lower-case identifier"),
        (lambda: Reduction("s", "mean", "x"), "must be one of count, sum, min, max, reduce, not"),
        (lambda: Reduction("s", "sum"), "Reduction 's', a sum, needs the value that a tuple"),
        (lambda: Reduction("n", "count", "x"), "a count, has no value; sum a condition to count"),
        (lambda: Reduction("s", "reduce", "x"), "Reduction 's' needs `combine`, an expression of"),
        (
            lambda: Reduction("s", "max", "x", combine="a + b"),
            "Reduction 's', a max, has no `combine` of its own; use function 'reduce'.",
        ),
        (
            lambda: Reduction("s", "max", "x", inverse="a - b"),
            "Reduction 's', a max, has no `inverse` of its own",
        ),
    ],
)
def test_parts_are_checked_by_themselves(make, message):
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("size"), "The document is no description of an operator"),
        (lambda d: d.pop("fields"), "The document is no description of an operator (TypeError"),
        (lambda d: d.update(keys=3), "The document is no description of an operator (TypeError"),
        (lambda d: d.update(pane=7), "'everything' disagrees with itself in pane; write it again"),
        (lambda d: d.update(colour="red"), "disagrees with itself in colour"),
        (lambda d: d["reductions"][0].update(combine="a * b"), "has no `combine` of its own"),
    ],
)
def test_documents_that_are_none_are_refused(change, message):
    document = json.loads(json.dumps(EVERYTHING.to_dict()))
    change(document)
    with pytest.raises(UsageError) as caught:
        WindowedOperator.from_dict(document)
    assert message in str(caught.value)
