# SPDX-License-Identifier: Apache-2.0
"""Random trees of parts: nearly all that can be written are legal."""

from dataclasses import fields
import json
from random import Random
import re
from types import NoneType, UnionType
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest

from hdl.external.engine import ExternalScan
from hdl.index.engine import Index
from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.band import Band
from hdl.predicates.own import Own
from hdl.reducing import ReducingScan
from hdl.scan.engine import Rounds, Scan
from tests.timing import least_seconds

#: Sizes are drawn up to so much beyond the least.
MOST = 1 << 10
#: Numbers that follow from other parts; few others go with those, as few lanes go with a beat. Of a
#: predicate there is a text.
DERIVED = ("memory_width", "failure_cycles", "probe_bits", "predicate")


def drawn_keys(random):
    """Return up to three fields."""
    return tuple(
        KeyField(name=name, bits=random.randint(1, 64), signed=random.random() < 0.5)
        for name in random.sample("abcd", random.randint(1, 3))
    )


def drawn_text(random, keys):
    """Return a condition on fields of such keys."""
    one, other = (random.choice(keys).name for _ in range(2))
    texts = (
        f"l.{one} == r.{one}",
        f"abs(l.{one} - r.{one}) <= 3 or l.{other} != r.{other}",
        f"l.{one} * r.{other} >= 5",
    )
    return random.choice(texts)


def drawn(random, name, hint, keys):
    """Return a value of a field."""
    if get_origin(hint) is UnionType:
        return drawn(random, name, random.choice(get_args(hint)), keys)
    if get_origin(hint) is Annotated:
        return drawn_number(random, name, hint.__metadata__[0].values, keys)
    return None if hint is NoneType else drawn_part(random, hint, keys)


def drawn_number(random, name, values, keys):
    """Return a value of an option; one without a limit is small about as often as large."""
    if name in ("keys", "where", "architecture"):
        return {"keys": keys, "where": drawn_text(random, keys)}.get(name, "splitjoin")
    if isinstance(values, tuple):
        return random.choice(values)
    if isinstance(values, range):
        return random.choice(values)
    return values.least + int((MOST + 2) ** random.random()) - 1


def drawn_part(random, kind, keys):
    """Return a part of a kind, which may be refused."""
    hints = get_type_hints(kind, include_extras=True)
    names = [
        field.name
        for field in fields(kind)
        if not (field.name in DERIVED and field.default is None)
    ]
    if kind is Rounds:
        return Rounds(lanes=1 << random.randrange(11))
    parts = {name: drawn(random, name, hints[name], keys) for name in names}
    if kind is ExternalScan:
        parts["read"] = type(parts["read"])()
    return kind(**parts)


def legal(seed):
    """Return a random tree of parts, or None with the reason of its refusal."""
    random = Random(seed)
    try:
        return drawn_part(random, JoinParameters, drawn_keys(random)), ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("count", [300, pytest.param(1_000, marks=pytest.mark.long)])
def test_of_random_trees_nine_of_ten_are_legal_and_others_refused_with_the_reason(count):
    refused, seen = [], set()
    for seed in range(count):
        tree, reason = legal(seed)
        assert least_seconds(lambda seed=seed: legal(seed), limit=0.1) < 0.1, seed
        if reason:
            refused.append(reason)
        else:
            seen.add(type(tree.engine))
            assert JoinParameters.from_dict(tree.to_dict()) == tree
            assert JoinParameters.of(**tree.words()) == tree
    assert all(" must be " in reason or "; " in reason for reason in refused), refused
    assert len(refused) <= 0.1 * count, "\n".join(refused)
    assert seen == set(get_args(get_type_hints(JoinParameters)["engine"]))


def mutated(values, random):
    """Return a copy of JSON-compatible values with one entry dropped, added or of another type."""
    copy = json.loads(json.dumps(values))
    places = [[]]
    for place in places:  # which grows, with every place below one of its own
        found = at(copy, place)
        inner = found.keys() if isinstance(found, dict) else range(len(found))
        places += [[*place, key] for key in inner if isinstance(found[key], dict | list)]
    found = at(copy, random.choice(places))
    change = random.choice(["drop", "add", "retype"])
    if isinstance(found, list):
        found[random.randrange(len(found))] = random.choice([0, None, "x", [], {}])
    elif change == "add":
        found["another"] = 1
    elif change == "drop":
        del found[random.choice(list(found))]
    else:  # but not None, which asks for what follows from other parts
        name = random.choice(list(found))
        found[name] = random.choice([True, 0, -1, 2.5, "x", "", [], [7], {}, {"kind": "x"}])
    return copy


def at(values, place):
    """Return what is in a place of nested values."""
    for key in place:
        values = values[key]
    return values


@pytest.mark.parametrize("count", [150, pytest.param(1_000, marks=pytest.mark.long)])
def test_a_malformed_tree_is_refused_with_a_reason_or_is_a_tree(count):
    """What was dropped is not made up: a tree that is read says what it was read from."""
    refused = []
    for seed in range(count):
        tree, _ = legal(seed)
        if tree is None:
            continue
        for number in range(4):
            values = mutated(tree.to_dict(), Random(4 * seed + number))
            try:
                read = JoinParameters.from_dict(values)
            except ValueError as error:
                refused.append(str(error))
            else:
                assert json.loads(json.dumps(read.to_dict())) == values
    silent = [one for one in refused if not re.search(r" must |; | has no parameters|needs", one)]
    assert not silent
    assert len(refused) > count


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Index(predicate=Own(where="l.x < r.x")), "must be a Band or Equality, not Own"),
        (lambda: ReducingScan(predicate=Band(), read=Rounds(), value_bits=4), "must be a Lanes"),
        (lambda: JoinParameters(engine=Band()), "'engine' .* must be a Scan or .* not Band"),
        (lambda: JoinParameters(engine=None), "'engine' .* must be a Scan or .* not None"),
        (lambda: Scan(predicate=Band(), read=Rounds(lanes=3)), "power of two, not 3"),
    ],
)
def test_a_tree_that_makes_no_sense_cannot_be_written(make, message):
    with pytest.raises(ValueError, match=message):
        make()
