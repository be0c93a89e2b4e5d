# SPDX-License-Identifier: Apache-2.0
"""Which rows each of two devices gets, when the window outgrows the first one."""

from itertools import accumulate
import random

import pyarrow as pa
import pytest

from host.errors import CapacityError
from host.protocol.manifest import Manifest
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.session.intake import TaggedLayout
from spark_offload.partitioning.tagged import ALONE_COLUMN, LEAST
from spark_offload.task.handover import Handover
from tests.host.small_bundles import BUNDLES, write_manifest
from tests.spark_offload.tagged_batches import in_batches, tagged_table

WIDTH = 4
HOLDS = 8
"""Rows of a side that the device has room for."""

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.int32())])


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "tiny"
    found = Manifest.load(write_manifest(BUNDLES["tiny"], folder))
    assert found.capacity == HOLDS
    return found


def sorted_rows(pairs, first, halo=0):
    """Return rows of sides and times, of which the first ones are halo rows."""
    ordered = sorted(pairs, key=lambda pair: pair[1])
    return [
        (side, first + time, number, number, number < halo)
        for number, (side, time) in enumerate(ordered)
    ]


def held(rows, at):
    """Return how many rows of its side row ``at`` finds in the window."""
    side, time = rows[at][:2]
    return sum(row[0] == side and time - row[1] <= WIDTH for row in rows[:at])


def handed_over(manifest, table, cuts, *, how="inner", strict=False):
    batches = list(in_batches(table, cuts))
    columns = set(table.schema.names)
    layout = TaggedLayout(
        SCHEMA, SCHEMA, 3, shared=True,
        halo="halo" if "halo" in columns else None,
        alone=ALONE_COLUMN if ALONE_COLUMN in columns else None,
    )  # fmt: skip
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    return Handover(reader, layout, JoinType(how), WIDTH, manifest, strict=strict)


@pytest.mark.few(16)
@pytest.mark.parametrize("how", [kind.value for kind in JoinType])
@pytest.mark.parametrize("in_range", [False, True])
@pytest.mark.parametrize("first", [0, -9, LEAST, -LEAST - 100])
def test_the_second_device_gets_what_the_first_one_has_not_and_what_that_can_meet(
    manifest, how, in_range, first
):
    cuts_at = []
    for seed in range(8):
        rng = random.Random(seed)
        # Now and then more rows come than fit, early or late.
        dense = rng.randrange(2, 70)
        times = accumulate(rng.choice([0, 0, 1, 2, 3]) if at < dense else 0 for at in range(70))
        pairs = [(rng.randrange(2), time) for time in times]
        cuts = [rng.randrange(70) for _ in range(rng.choice([3, 40, 90]))]
        halo = rng.randrange(60) if in_range else 0
        rows = sorted_rows(pairs, first, halo)
        cuts_at.append(require_handover(manifest, rows, cuts, how, in_range=in_range))
    assert len(set(cuts_at)) > 4


def require_handover(manifest, rows, cuts, how, *, in_range):
    """Compare what both devices get with ``rows``; return the place of the cut."""
    table = tagged_table(rows, part=1 if in_range else None)
    flagged = in_range and how != "inner"
    if flagged:
        flags = pa.array([row[3] % 3 > 0 for row in rows], pa.bool_())
        table = table.append_column(ALONE_COLUMN, flags)
    cut = next((at for at in range(len(rows)) if held(rows, at) >= HOLDS), None)
    handover = handed_over(manifest, table, cuts, how=how)
    assert not handover.is_needed
    given_first = handover.first().read_all()
    assert given_first == table.slice(0, cut)
    assert handover.is_needed == (cut is not None)
    assert handover.rest_rows == 0
    if cut is None:
        return None

    reader, layout = handover.rest()
    assert layout.halo == "halo"
    assert layout.alone == (None if how == "inner" else ALONE_COLUMN)
    rest = reader.read_all()
    added = [
        name for name in (layout.halo, layout.alone) if name and name not in table.schema.names
    ]
    assert rest.schema.names == [*table.schema.names, *added]
    assert rest.schema.field("halo").type == pa.bool_()
    count = rest.num_rows - (len(rows) - cut)
    assert handover.rest_rows == len(rows) - cut
    names = [name for name in table.schema.names if name not in ("halo", ALONE_COLUMN)]
    assert rest.select(names) == table.slice(cut - count).select(names)

    # Halo rows are all that the first device has got and a later row can meet, at least.
    halo_flags = [*[True] * count, *(row[4] for row in rows[cut:])]
    assert rest["halo"].to_pylist() == halo_flags
    last = rows[cut - 1][1]
    reach = WIDTH if how == "inner" else 2 * WIDTH
    assert all(row[1] < last - reach for row in rows[: cut - count])
    ends = sorted(min(place, len(rows)) for place in [*cuts, len(rows)])
    if count:
        end = next(place for place in ends if place > cut - count)
        assert rows[min(end, cut) - 1][1] >= last - reach, "a batch too many is kept"
    if how != "inner":
        alone = [
            row[1] >= last - WIDTH and (not flagged or row[3] % 3 > 0)
            for row in rows[cut - count :]
        ]
        assert rest[ALONE_COLUMN].to_pylist() == alone

    most = max(held(rows[cut - count :], at) + 1 for at in range(len(rows) - cut + count))
    assert handover.needed == most
    side = Side(rows[cut][0])
    number = sum(row[0] == side for row in rows[:cut])
    label = ("R (left)", "S (right)")[side]
    assert handover.reason == (
        f"in software from row {number} of side {label} on (the first is 0), as the window came to "
        f"hold {most} rows of a side and the device has room for {HOLDS}"
    )
    return cut


def test_a_window_that_never_outgrows_the_device_stays_there(manifest):
    rows = sorted_rows([(at % 2, at) for at in range(60)], 0)
    assert require_handover(manifest, rows, [7, 20], "inner", in_range=False) is None
    assert require_handover(manifest, [], [0], "inner", in_range=False) is None


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("cuts", [[], [3, 9, 12]])
def test_without_software_all_rows_are_read_for_the_capacity_that_they_need(manifest, side, cuts):
    rows = sorted_rows([(1 - side, 0), *[(side, 5)] * (HOLDS + 1), *[(side, 30)] * (HOLDS + 4)], 0)
    handover = handed_over(manifest, tagged_table(rows), cuts, strict=True)
    with pytest.raises(CapacityError) as raised:
        handover.first().read_all()
    error = raised.value
    assert error.side == ("R (left)", "S (right)")[side]
    assert (error.capacity, error.ordinal, error.needed) == (HOLDS, HOLDS, HOLDS + 4)
    assert "--cores 2" in str(error)
    assert "demo-index" not in str(error)
    assert str(error).endswith(
        " For device 'sim:', build=True counts the windows and builds what they need."
    )
    assert handover.rest_rows == HOLDS + 5


def test_the_error_of_an_index_tells_how_to_build_one(tmp_path):
    index = Manifest.load(write_manifest(BUNDLES["tiny"].with_(engine="index"), tmp_path))
    table = tagged_table(sorted_rows([(0, 5)] * (index.capacity + 1), 0))
    with pytest.raises(CapacityError, match="--preset demo-index"):
        handed_over(index, table, [], strict=True).first().read_all()
