# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

from host.protocol.segments import growth

MANIFEST = SimpleNamespace(
    counters=[SimpleNamespace(name="cycles", bits=8), SimpleNamespace(name="words", bits=48)]
)


def test_counters_that_begin_again_at_zero_have_grown_by_the_rest():
    then, now = {"cycles": 250, "words": 7}, {"cycles": 4, "words": 7, "spare": 1}
    assert growth(MANIFEST, then, now) == {"cycles": 10, "words": 0}


def test_a_counter_that_a_device_does_not_have_is_left_out():
    assert growth(MANIFEST, {"words": 1}, {"words": 3}) == {"words": 2}
