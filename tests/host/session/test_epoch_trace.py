# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Appendix E, as a join: the longest tweet of each hashtag, across a change of epochs.

The seed's operator keeps the greatest length by hashtag and window of one hour, and a window begins
every 30 minutes. Here, tweets are tuples of R, one for each hashtag. A tuple of S asks for the
state of one window: all tweets of its hashtag since the window began, up to the question. The state
is their greatest length.
"""

from itertools import permutations

import pyarrow as pa
import pytest

from host import Epoch, open_device
from host.query.queries import Query
from host.session.join import Join
from tests.host.tables import bundle

#: Tweets of the trace: time, hashtag, length of the text. The last tweet is the seed's t.
TWEETS = [
    ("09:50", "#pink", len("hello #pink")),
    ("09:58", "#red", len("hi #red #pink")),
    ("09:58", "#pink", len("hi #red #pink")),
]
#: What the seed's state is at a time: by hashtag and begin of the window, the greatest length.
STATES = {
    "09:50": {("#pink", "09:00"): 11, ("#pink", "09:30"): 11},
    "09:58": {
        ("#pink", "09:00"): 13, ("#pink", "09:30"): 13,
        ("#red", "09:00"): 13, ("#red", "09:30"): 13,
    },
    "10:00": {("#pink", "09:00"): 13, ("#red", "09:00"): 13},  # windows that expire leave as output
}  # fmt: skip
QUERY = Query(
    on="tag",
    band=[("at", "begin", 0, None), ("at", "at", None, 0)],
    time="at",
    within=60,
)


def minute(text):
    hours, minutes = text.split(":")
    return 60 * int(hours) + int(minutes)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    folder = bundle(
        tmp_path_factory.mktemp("trace") / "bundle",
        keys=("x16", "x16", "x16"), timestamp_bits=12, cores=3, sub_window=8,
    )  # fmt: skip
    with open_device(f"software:{folder}") as opened:
        yield opened


@pytest.mark.parametrize("active", [(0,), (1, 2), (2, 0, 1)])
@pytest.mark.parametrize("then", [cores for n in (1, 2, 3) for cores in permutations(range(3), n)])
def test_the_state_is_that_of_the_trace_whichever_instances_leave_or_join(device, active, then):
    left = pa.table(
        {
            "at": [minute(at) for at, *_ in TWEETS],
            "tag": [tag for _, tag, _ in TWEETS],
            "length": [length for *_, length in TWEETS],
        }
    )
    asked = [(at, *window) for at, state in STATES.items() for window in state]
    right = pa.table(
        {
            "at": [minute(at) for at, *_ in asked],
            "tag": [tag for _, tag, _ in asked],
            "begin": [minute(begin) for *_, begin in asked],
        }
    )
    epochs = [Epoch(active, number=7), Epoch(then, beyond=minute("09:50"), number=8)]
    join = Join(left, right, QUERY, device, record=True, epochs=epochs)
    join.run()
    states = {}
    for tweet, question in zip(*(rows.tolist() for rows in join.measured.pairs), strict=True):
        at, *window = asked[question]
        length = max(TWEETS[tweet][2], states.get(at, {}).get(tuple(window), 0))
        states.setdefault(at, {})[tuple(window)] = length
    assert states == STATES
    # The watermark passes gamma with t, behind its predecessor and the state that this one leaves.
    assert [(epoch.number, epoch.after) for epoch in join.measured.epochs] == [(7, 0), (8, 3)]
