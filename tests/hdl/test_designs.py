# SPDX-License-Identifier: Apache-2.0
"""Random trees of parts: nearly all that can be written are legal."""

from dataclasses import fields
from random import Random
from types import NoneType, UnionType
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest

from hdl.designs import Join, Part
from hdl.parameters import KeyField
from tests.timing import least_seconds

#: Sizes are drawn up to so much beyond the least.
MOST = 1 << 10


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


def drawn(random, hint, keys):
    """Return a value of a type; a number is small about as often as it is large."""
    if get_origin(hint) is UnionType:
        return drawn(random, random.choice(get_args(hint)), keys)
    if get_origin(hint) is Annotated:
        allowed = hint.__metadata__[0]
        if isinstance(allowed, tuple):
            return random.choice(allowed)
        least, most = allowed[0], min(allowed[-1], allowed[0] + MOST)
        return least + int((most - least + 2) ** random.random()) - 1
    if hint is NoneType:
        return None
    if hint is bool:
        return random.random() < 0.5
    if hint is str:
        return drawn_text(random, keys)
    if not (isinstance(hint, type) and issubclass(hint, Part)):
        return keys
    hints = get_type_hints(hint, include_extras=True)
    names = [field.name for field in fields(hint)]
    parts = {name: drawn(random, hints[name], keys) for name in names}
    return hint(**parts)


def legal(tree):
    """Return the parameters of a tree, or None with the reason of its refusal."""
    try:
        return tree.parameters, ""
    except ValueError as error:
        return None, str(error)


@pytest.mark.parametrize("count", [300, pytest.param(1_000, marks=pytest.mark.long)])
def test_of_random_trees_nine_of_ten_are_legal_and_others_refused_with_the_reason(count):
    random, refused, seen = Random(57), [], set()
    for _ in range(count):
        tree = drawn(random, Join, drawn_keys(random))
        parameters, reason = legal(tree)
        assert least_seconds(lambda tree=tree: legal(tree), limit=0.1) < 0.1, tree
        if reason:
            refused.append(reason)
        else:
            seen.add(type(tree.engine))
            assert parameters.cores == tree.window.cores
    assert all(" must be " in reason or "; use" in reason for reason in refused), refused
    assert len(refused) <= 0.1 * count, "\n".join(refused)
    assert seen == set(get_args(get_type_hints(Join)["engine"]))
