# SPDX-License-Identifier: Apache-2.0
"""A generator whose next element is made in a thread, while the last one is used."""

from concurrent.futures import ThreadPoolExecutor
import threading

import pytest

from host.runtime import Ahead

TIMEOUT = 20


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_elements_come_in_order(threads, count):
    assert list(Ahead((n for n in range(count)), threads)) == list(range(count))


def test_many_share_threads(threads):
    every = [Ahead((n for n in range(50)), threads) for _ in range(5)]
    assert list(zip(*every, strict=True)) == [(n,) * 5 for n in range(50)]


def test_one_element_is_made_before_it_is_asked_for_and_no_more(threads):
    made = [threading.Event() for _ in range(3)]

    def elements():
        for number, event in enumerate(made):
            event.set()
            yield number

    ahead = Ahead(elements(), threads)
    assert made[0].wait(TIMEOUT)
    threads.submit(int).result()  # the same thread would have gone on by now
    assert not made[1].is_set()
    assert next(ahead) == 0
    assert made[1].wait(TIMEOUT)
    assert not made[2].is_set()


def test_an_error_comes_behind_the_elements_before_it(threads):
    def elements():
        yield 1
        raise ValueError("two")

    ahead = Ahead(elements(), threads)
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="two"):
        next(ahead)


@pytest.mark.parametrize("taken", [0, 1])
def test_closing_waits_and_closes_the_generator(threads, taken):
    begun, go_on, closed = (threading.Event() for _ in range(3))

    def elements():
        try:
            yield from range(taken)
            begun.set()
            assert go_on.wait(TIMEOUT)
            yield taken
        finally:
            closed.set()

    ahead = Ahead(elements(), threads)
    assert [next(ahead) for _ in range(taken)] == list(range(taken))
    assert begun.wait(TIMEOUT)
    closing = threading.Thread(target=ahead.close)
    closing.start()
    assert not closed.is_set()
    go_on.set()
    closing.join(TIMEOUT)
    assert closed.is_set()
