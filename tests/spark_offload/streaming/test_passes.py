# SPDX-License-Identifier: Apache-2.0
"""Every new pair once: of two new rows, and of a new row with a kept one."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from host import open_device
from host.errors import WindowOverflowError
from host.join_type import JoinType
from spark_offload.streaming.passes import NewPairs, Rows, reach
from tests.spark_offload.stream_model import SCHEMA, holds, stream_task

WIDTH = 6
ROW = st.tuples(st.integers(0, 20), st.integers(0, 1), st.integers(0, 3))
ROWS = st.lists(ROW, max_size=5)


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


@given(ROWS, ROWS, ROWS, ROWS, st.sampled_from([kind.value for kind in JoinType]), st.booleans())
def test_pairs_with_a_new_row_come_once_and_tell_who_has_matched(
    device, kept_left, new_left, kept_right, new_right, how, equal
):
    now = task(how, equal)
    sides = [
        Rows(table(kept), table(new, first=len(kept)))
        for kept, new in ((kept_left, new_left), (kept_right, new_right))
    ]
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
        for side, rows in enumerate((left, right)):
            matched = {pair[side] for pair in want}
            assert pairs.matched[side].tolist() == [row in matched for row in range(len(rows))]
    assert pairs.software_rows == 0
    assert pairs.cycles == 0
    # Without rows of both sides that can meet the device is not asked.
    assert pairs.device_seconds > 0 or not want


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
        sides = Rows(table([]), table(crowd)), Rows(table([(2, 0, 1)]), table([(3, 0, 2)], 1))
        pairs = NewPairs(task(how), device, *sides, *fallback)
        ids = [
            pair
            for batch in pairs.batches()
            for pair in zip(batch["id"].to_pylist(), batch["id_right"].to_pylist(), strict=True)
        ]
        return sorted(ids), pairs

    with open_device("software:") as large, open_device(software_bundle) as small:
        want, told = join(large, software)
        assert told.software_rows == 0
        assert not opened
        found, told = join(small, software)
        assert found == want
        assert told.software_rows == 92
        assert [device.uri for device in opened] == ["software:"]
        with pytest.raises(WindowOverflowError):
            join(small)
    for device in opened:
        device.close()
