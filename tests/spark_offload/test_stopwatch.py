# SPDX-License-Identifier: Apache-2.0
import time

from spark_offload.measures import Stopwatch

PAUSE = 0.05


def slow(count):
    for number in range(count):
        time.sleep(PAUSE)
        yield number


def test_waiting_for_items_is_not_own_time():
    watch = Stopwatch()
    assert list(watch.reading(slow(3))) == [0, 1, 2]
    assert watch.seconds < PAUSE


def test_what_becomes_of_items_is_not_own_time():
    watch = Stopwatch()
    for _ in watch.giving(iter(range(3))):
        time.sleep(PAUSE)
    assert watch.seconds < PAUSE


def test_own_work_is_counted():
    watch = Stopwatch()
    given = watch.giving(slow(2))  # made here, given away
    assert list(given) == [0, 1]
    assert watch.seconds >= 2 * PAUSE
