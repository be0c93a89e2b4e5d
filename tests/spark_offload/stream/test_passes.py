# SPDX-License-Identifier: Apache-2.0
"""Every new pair once: of two new rows, and of a new row with a kept one."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
import random

import pyarrow as pa
import pytest

from host import open_device
from host.errors import CapacityError
from host.reference.types import JoinType
from host.session.join import Join
from spark_offload.stream import passes
from spark_offload.stream.passes import NewPairs, Rows, reach
from spark_offload.stream.state import KeptPart
from tests.spark_offload.stream_model import SCHEMA, holds, stream_task

WIDTH = 6


@pytest.fixture(scope="module")
def device():
    with open_device("software:") as opened:
        yield opened


def task(how="inner", equal=True):
    return stream_task(equal=equal, groups=1, within=timedelta(microseconds=WIDTH), band=1, how=how)


def table(rows, first=0):
    """Return rows ``(t, k, x)``, numbered from ``first`` on."""
    t, k, x = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [t, k, x, range(first, first + len(rows))]
    arrays = [
        pa.array(list(column), pa.int64()).cast(field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def side(kept, new):
    """Return kept and new rows of a side, the kept ones in three parts."""
    cuts = [0, len(kept) // 3, len(kept) // 2, len(kept)]
    parts = [
        KeptPart(table(kept[begin:end], begin)) for begin, end in pairwise(cuts) if begin < end
    ]
    return Rows(parts, table(new, first=len(kept)))


def random_rows(rng, most):
    """Return up to ``most`` rows ``(t, k, x)``."""
    return [
        (rng.randrange(21), rng.randrange(2), rng.randrange(4)) for _ in range(rng.randrange(most))
    ]


@pytest.mark.few(24)
@pytest.mark.parametrize("how", [kind.value for kind in JoinType])
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_pairs_with_a_new_row_come_once_and_tell_who_has_matched(device, how, equal, seed):
    rng = random.Random(seed)
    kept_left, new_left, kept_right, new_right = (random_rows(rng, 9) for _ in range(4))
    now = task(how, equal)
    sides = [side(kept_left, new_left), side(kept_right, new_right)]
    pairs = NewPairs(now, device, *sides)
    batches = list(pairs.batches())
    left, right = [*kept_left, *new_left], [*kept_right, *new_right]
    want = sorted(
        (a, b)
        for a, l in enumerate(left)
        for b, r in enumerate(right)
        if (a >= len(kept_left) or b >= len(kept_right))
        and abs(l[0] - r[0]) <= WIDTH
        and all(
            holds(term, *({"t": t, "k": k, "x": x}[term.left] for t, k, x in (l, r)))
            for term in now.query.terms
        )
    )
    if now.query.how.has_pairs:
        found = [
            pair
            for batch in batches
            for pair in zip(batch["id"].to_pylist(), batch["id_right"].to_pylist(), strict=True)
        ]
        assert sorted(found) == want
        assert pairs.results == len(want)
        assert all(batch.schema == now.output for batch in batches)
    else:
        assert batches == []
        assert pairs.results == 0
    if now.query.how is not JoinType.INNER:
        for own, rows in enumerate((left, right)):
            matched = {pair[own] for pair in want}
            assert pairs.matched[own].tolist() == [row in matched for row in range(len(rows))]
    assert pairs.software_rows == 0
    assert pairs.cycles == 0
    assert [flags.dtype for flags in pairs.matched] == [bool, bool]


def test_a_device_is_not_asked_where_no_rows_can_meet():
    far = side([(900, 0, 0)], [(901, 0, 0)])
    pairs = NewPairs(task("full"), None, side([], [(3, 0, 0)]), far)
    assert list(pairs.batches()) == []
    assert (pairs.results, pairs.cycles, pairs.device_seconds) == (0, 0, 0.0)
    assert [flags.tolist() for flags in pairs.matched] == [[False], [False, False]]


def test_what_both_passes_take_is_added_up(monkeypatch, device):
    class Timed(Join):
        """A join that says how long it has taken."""

        measured = property(lambda self: replace(super().measured, cycles=5, seconds=2.0))

    monkeypatch.setattr(passes, "Join", Timed)
    sides = [side([(3, 0, 0)], [(3, 0, 0)]) for _ in range(2)]
    pairs = NewPairs(task(), device, *sides)
    assert sum(batch.num_rows for batch in pairs.batches()) == 3
    assert (pairs.cycles, pairs.device_seconds, pairs.software_rows) == (10, 4.0, 0)


def test_what_rows_can_meet_reaches_as_far_as_the_window_both_ways():
    assert reach(table([(7, 0, 0), (3, 0, 0), (5, 0, 0)]), "t", WIDTH) == (-3, 13)
    assert reach(table([]), "t", WIDTH) is None


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_pass_whose_window_outgrows_the_device_is_joined_in_software(software_bundle, how):
    crowd = [(n // 10, 0, n % 4) for n in range(90)]
    opened = []

    def software():
        opened.append(open_device("software:"))
        return opened[-1]

    def join(device, *fallback):
        kept = [(n // 10, 0, n % 4) for n in range(70)]
        sides = side(kept, crowd), side([(2, 0, 1)], [(3, 0, 2)])
        pairs = NewPairs(task(how), device, *sides, *fallback)
        ids = [
            pair
            for batch in pairs.batches()
            for pair in zip(batch["id"].to_pylist(), batch["id_right"].to_pylist(), strict=True)
        ]
        matched = [flags.tolist() for flags in pairs.matched]
        return (sorted(ids), matched), pairs

    with open_device("software:") as large, open_device(software_bundle) as small:
        want, told = join(large, software)
        assert told.software_rows == 0
        assert not opened
        found, told = join(small, software)
        assert found == want
        assert told.software_rows == 90 + 2 + 70 + 1, "both passes"
        assert {device.uri for device in opened} == {"software:"}
        with pytest.raises(CapacityError):
            join(small)
    for device in opened:
        device.close()
