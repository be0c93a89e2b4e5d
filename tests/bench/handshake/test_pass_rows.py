# SPDX-License-Identifier: Apache-2.0
"""The rows of random passes against a list of them; what is kept for them; cycles."""

from collections import deque
import random

import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.layouts import place_shape
from bench.handshake.segment import PassRows
from hdl.parameters import JoinParameters
from tests.halves import half
from tests.hdl.cycles import each_cycle

#: Options of a segment: of the handshake join, and of both sides of the low-latency one.
KINDS = [
    {"stride": 1},
    {"stride": 2, "limited": True},
    {"stride": 3, "limited": True, "meets": 1},
    {"stride": 5, "limited": True, "meets": 3},
]


def rows_of(pass_, stride, places):
    """Return what a pass shows, row by row."""
    flags = {"mark": pass_["mark"], "limit": pass_["limit"]}
    first, rows, met = pass_["first"], pass_["rows"], pass_["met"]
    shown = [
        {"row": (first + n) % places, "real": 1, "tag": pass_["oldest"] + stride * n, "meeting": 0}
        for n in range(rows)
    ]
    shown += [{"real": 1, "tag": pass_["met_first"] + n, "meeting": 1} for n in range(met)]
    return [{**row, **flags} for row in shown or [{"real": 0}]]


def random_pass(generator, rows, most):
    """Return a pass over at most ``rows`` rows that meets at most ``most`` tuples; or a mark."""
    mark = generator.random() < 0.2
    count = 0 if mark else generator.choice([0, 1, 2, generator.randint(0, rows)])
    met = 0 if mark else generator.randint(0, most)
    numbers = {name: generator.randrange(100) for name in ("oldest", "limit", "met_first", "tag")}
    return {"mark": mark, "first": generator.randrange(2 * rows), "rows": count, "met": met,
            **numbers}  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("options", "sub_window", "room", "comes"),
    half(KINDS, [1, 2, 3, 4, 15], [(1.0, 1.0), (0.6, 0.7), (0.9, 0.1)], of=3),
)
def test_the_rows_of_passes_have_their_turns_in_order(options, sub_window, room, comes):
    """One row for each cycle with room, none idle between passes that wait; nothing is let go."""
    parameters = JoinParameters.of(cores=3, sub_window=sub_window, architecture=LOW_LATENCY)
    dut, generator = PassRows(parameters, **options), random.Random(sub_window)
    places = 1 << place_shape(parameters).width
    carried, meets = set(dut.pass_.shape().members), options.get("meets", 0)
    passes = deque(
        random_pass(generator, places // 2, (1 << meets) - 1 if meets else 0) for _ in range(25)
    )
    left, deadline = deque(), sum(2 + p["rows"] + p["met"] for p in passes)

    def steps(put, get):
        waiting, first_needed = False, None
        for _ in range(int(deadline * (1 / room + 1 / comes))):
            filled = bool(passes) and (waiting or generator.random() < comes)
            shown = passes[0] if filled else random_pass(generator, 1, 0)
            tail, free = generator.randrange(places), generator.random() < room
            put(filled=filled, room=free, tail=tail)
            put(pass_={name: value for name, value in shown.items() if name in carried})
            if meets:
                put(met_tail=tail % 50)
            if first_needed is not None:
                assert get("kept") == first_needed[0]
                if meets:
                    assert get("met_kept") == first_needed[1]
            assert get("running") == bool(left)
            assert get("step") == (bool(left) and free)
            if left:
                row, begins, of_pass = left[0]
                assert get("begin") == (begins and free)
                for name in row.keys() & {"row", *dut.of_row()}:
                    if free or name != "meeting":  # which is told only of a row that is read
                        assert get(name) == row[name], name
                first_needed = of_pass["first"], of_pass["met_first"]
                if free:
                    left.popleft()
            else:
                first_needed = (shown["first"], shown["met_first"]) if filled else (tail, tail % 50)
            take = filled and not left
            assert get("take") == take
            if take:
                rows = rows_of(shown, options["stride"], places)
                left.extend((row, not n, shown) for n, row in enumerate(rows))
                passes.popleft()
            waiting = filled and not take
            yield
            if not passes and not left:
                break
        assert not passes
        assert not left

    each_cycle(dut, steps)


def test_a_row_has_its_turn_after_the_stated_cycles_and_one_follows_in_every_cycle():
    dut = PassRows(JoinParameters.of(cores=2, sub_window=4, architecture=HANDSHAKE))

    def steps(put, get):
        turns, lengths = [], iter([3, 0, 1, 2])
        put(filled=1, room=1, pass_={"rows": next(lengths), "first": 7})
        for cycle in range(20):
            if get("step"):
                turns.append(cycle)
            take = get("take")
            yield
            if take:
                rows = next(lengths, None)
                put(filled=rows is not None, pass_={"rows": rows or 0, "first": 7})
        # A pass over nothing takes a cycle.
        assert turns == list(range(dut.latency, dut.latency + 3 + 1 + 1 + 2))

    each_cycle(dut, steps)
