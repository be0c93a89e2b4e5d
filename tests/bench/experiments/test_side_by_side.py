# SPDX-License-Identifier: Apache-2.0
from threading import Event

import pytest

from bench.experiments.sweep import side_by_side


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_items(workers):
    steps = []
    found = side_by_side(
        lambda n: n * n, [3, 1, 2], workers=workers, advance=lambda *step: steps.append(step)
    )
    assert list(found.items()) == [(3, 9), (1, 1), (2, 4)]
    assert steps == [(done, 3) for done in range(4)]


def test_nothing_to_do_is_done():
    assert side_by_side(str, [], workers=2, advance=lambda done, of: None) == {}


def test_an_index_error_of_a_call_is_raised_as_any_other():
    with pytest.raises(IndexError, match="pop from"):
        side_by_side(lambda n: [].pop(), [1, 2], workers=1, advance=lambda done, of: None)


def test_an_interrupt_does_not_wait_for_a_call():
    end, begun, ended = Event(), Event(), Event()

    def call(item):
        if item == "long":
            begun.set()
            end.wait(60)
            ended.set()

    def advance(done, of):
        if done:
            assert begun.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(call, ["long", "short"], workers=2, advance=advance)
    assert not ended.is_set()
    end.set()
    assert ended.wait(60)
