# SPDX-License-Identifier: Apache-2.0
from concurrent.futures import CancelledError
from threading import Event, Thread

import pytest

from bench.experiments.sweep import Ahead


def test_things_are_made_once_in_the_order_of_their_announcement():
    order = []

    def make(name, place):
        order.append(name)
        return f"{name} at {place}"

    with Ahead(make) as made:
        for name in ("a", "b", "a", "c"):
            made.announce(name, "home")
        assert [made(name, "home") for name in ("c", "a", "d", "d")] == [
            "c at home", "a at home", "d at home", "d at home"
        ]  # fmt: skip
    assert order == ["a", "b", "c", "d"]


def test_a_thing_is_made_before_it_is_asked_for():
    second = Event()
    with Ahead(lambda name: second.set() if name == "b" else None) as made:
        made.announce("a")
        made.announce("b")
        assert second.wait(60)


def test_an_error_appears_where_the_result_is_asked_for():
    def make(name):
        if name == "bad":
            raise OSError("no room")
        return name

    with Ahead(make) as made:
        made.announce("bad")
        assert made("good") == "good"
        with pytest.raises(OSError, match="no room"):
            made("bad")


def test_what_has_not_begun_at_the_end_is_given_up():
    made = Ahead(lambda name: end.wait(60))
    end = Event()
    for name in ("first", "second"):
        made.announce(name)
    stopping = Thread(target=made.__exit__)
    stopping.start()
    with pytest.raises(CancelledError):
        made("second")
    end.set()
    stopping.join(60)
    assert made("first")
