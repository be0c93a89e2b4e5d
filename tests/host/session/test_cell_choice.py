# SPDX-License-Identifier: Apache-2.0
"""An index whose cells suit the first tuples gives the same answer, and reads less for it."""

import numpy as np
import pyarrow as pa
import pytest

from host import CountWindow, TimeWindow, open_device
from host.operators.verification import reference_pairs
from host.query.queries import Query
from host.reference.types import JoinType
from host.session import execution
from host.session.join import Join
from host.session.staging import LEAST_TUPLES
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle
from tests.windows import over

#: Three cores with windows of 60 tuples, which other files simulate as well.
INDEX = PARAMETERS["index, two in a word"]
ROWS = 3_000


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The small index, simulated."""
    with open_device(simulated_bundle(INDEX, tmp_path_factory.mktemp("cells") / "index")) as opened:
        yield opened


def rows(seed, count=ROWS):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "t": np.arange(count),
            "x": generator.integers(-32, 32, count).astype(np.int16),
            "k": generator.geometric(0.5, count).astype(np.int16),
        }
    )


def joined(device, window, count=ROWS, how="left", on=()):
    """Join two tables with a band; return the entries that were read, after comparing all pairs."""
    query = Query(band=[("x", "x", -2, 2)], time="t", **over(window), how=how, on=on)
    tables = rows(1, count), rows(2, count)
    join = Join(*tables, query, device, record=True)
    for _ in join.batches():
        pass
    for mine, theirs in zip(join.measured.pairs, reference_pairs(*tables, query), strict=True):
        assert np.array_equal(mine, theirs)
    return join.counters()["region_busy"]


@pytest.mark.parametrize(
    ("window", "how"), [(CountWindow(57), JoinType.LEFT), (TimeWindow(56), JoinType.INNER)]
)
def test_narrower_cells_give_the_same_answer_and_read_fewer_entries(
    device, monkeypatch, window, how
):
    fitted = joined(device, window, how=how)
    # Half of the rows have one key, and a quarter another one: their buckets are cut as well.
    beside = joined(device, window, how=how, on="k")
    monkeypatch.setattr(execution, "fitted_words", lambda *_: None)
    assert fitted < 0.7 * joined(device, window, how=how)
    assert beside < 0.8 * joined(device, window, how=how, on="k")


def test_few_tuples_change_nothing(device, monkeypatch):
    chosen = []
    original = execution.fitted_words
    monkeypatch.setattr(
        execution, "fitted_words", lambda *given: chosen.append(original(*given)) or chosen[-1]
    )
    joined(device, CountWindow(57), LEAST_TUPLES // 2 - 1)
    assert chosen == [None]
