# SPDX-License-Identifier: Apache-2.0
from itertools import accumulate, pairwise
import random

from amaranth import *
from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters
from hdl.window.tracker import WindowTracker
from hdl.words.prepared import pointer_layout
from tests.halves import half


def tracker_parameters(cores, sub_window, lanes=1):
    """Parameters of a small accelerator with timestamps."""
    return JoinParameters.of(cores=cores, sub_window=sub_window, lanes=lanes, timestamp_bits=16)


class Turns:
    """What the ingress says of the tuples of a window, for the core at ``position``."""

    def __init__(self, cores, position, size):
        self.cores, self.position = cores, position
        self.restart(size)

    def restart(self, size):
        """Begin a window of ``size`` tuples, or a time-based one if that is ``None``."""
        self.size, self.count = size, 0

    def present(self, ctx, dut, *, store):
        """Say whether the next tuple is for this core; return that. It comes if ``store``."""
        mine = self.count % self.cores == self.position
        full = self.size is not None and self.count >= self.size
        ctx.set(dut.mine, mine)
        ctx.set(dut.displaces, full and (self.count - self.size) % self.cores == self.position)
        self.count += bool(store)
        return mine


def run(parameters, position, body):
    """Run ``body(ctx, dut)`` on a tracker at ``position``."""
    dut = WindowTracker(parameters)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        dut.turns = Turns(parameters.cores, position, parameters.capacity)
        await body(ctx, dut)

    simulator.add_testbench(bench)
    with simulator.write_vcd(None):
        simulator.run()


def check_rows(ctx, dut):
    """The rows that are told beside the span are the row after its first and after its last."""
    span = ctx.get(dut.span)
    rows = 1 << len(dut.second)
    assert ctx.get(dut.second) == (span.tail.row + 1) % rows
    assert ctx.get(dut.stop) == (span.head.row + (span.head.lane != 0)) % rows


async def bring(ctx, dut, timestamp):
    """Bring a tuple to hand: it moves up in the region's input register."""
    ctx.set(dut.coming, [timestamp] * len(dut.coming))
    ctx.set(dut.fills, 1)
    ctx.set(dut.moves, 1)
    await ctx.tick()
    ctx.set(dut.moves, 0)


async def present(ctx, dut, timestamp, *, store, is_here=False, then=None):
    """Present a tuple until it is settled; return the span it meets, and the cycles waited.

    It is stored in the cycle after that, which is the one when this returns: so the next tuple,
    of timestamp ``then``, may be presented meanwhile, and ``is_here``. Otherwise follows
    :func:`finish`.
    """
    if not is_here:
        await bring(ctx, dut, timestamp)
        ctx.set(dut.store, 0)
    ctx.set(dut.present, 1)
    waited = 0
    while not ctx.get(dut.settled):
        await ctx.tick()
        ctx.set(dut.store, 0)
        waited += 1
        assert waited < 1_000
    if then is None:
        await ctx.tick()
    else:
        await bring(ctx, dut, then)
    ctx.set(dut.present, 0)
    span = ctx.get(dut.span)
    check_rows(ctx, dut)
    mine = dut.turns.present(ctx, dut, store=store)
    ctx.set(dut.store, store)
    ctx.set(dut.arrival, timestamp)
    stored = ctx.get(dut.stored)
    assert mine or not stored
    return span, stored, waited


async def finish(ctx, dut):
    """End the cycle in which a tuple is stored."""
    await ctx.tick()
    ctx.set(dut.store, 0)


def slots(parameters, span):
    """The local numbers of a span's keys, modulo the doubled ring."""
    size = 2 * parameters.ring_rows * parameters.engine.lanes

    def number(pointer):
        return pointer.row * parameters.engine.lanes + pointer.lane

    tail, head = number(span.tail), number(span.head)
    return [(tail + n) % size for n in range((head - tail) % size)]


async def begin(ctx, dut, size, *, timed):
    """Begin a new window."""
    dut.turns.restart(None if timed else size)
    strobe = dut.begin_time if timed else dut.begin_count
    ctx.set(dut.size, size)
    ctx.set(strobe, 1)
    await ctx.tick()
    ctx.set(strobe, 0)


@pytest.mark.parametrize(
    "cores", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.long) for n in (4, 7))]
)
@pytest.mark.parametrize(
    ("sub_window", "lanes"), [(1, 1), (5, 2), pytest.param(8, 3, marks=pytest.mark.long)]
)
def test_count_based_spans_are_this_cores_share_of_the_last_tuples(cores, sub_window, lanes):
    parameters = tracker_parameters(cores, sub_window, lanes)
    for position in {0, cores - 1}:
        for size in {1, cores, parameters.capacity, max(1, parameters.capacity - 1)}:

            async def body(ctx, dut, position=position, size=size):
                await begin(ctx, dut, size, timed=False)
                ring = 2 * parameters.ring_rows * lanes
                for count in range(6 * parameters.capacity + 3):
                    span, stored, waited = await present(ctx, dut, 0, store=1)
                    expected = [
                        n // cores % ring
                        for n in range(max(0, count - size), count)
                        if n % cores == position
                    ]
                    assert slots(parameters, span) == expected
                    assert stored == (count % cores == position)
                    assert waited == dut.latency
                assert not ctx.get(dut.overflow)

            run(parameters, position, body)


@pytest.mark.parametrize(("cores", "seed"), half([1, 3, 4], range(4), of=4))
def test_time_based_spans_are_what_has_not_outlived_the_lifespan(cores, seed):
    parameters = tracker_parameters(cores, 16, lanes=2)
    generator = random.Random(seed)
    lifespan = generator.choice([0, 1, 7, 20])
    position = generator.randrange(cores)

    async def body(ctx, dut):
        await begin(ctx, dut, lifespan, timed=True)
        ring = 2 * parameters.ring_rows * 2
        stored_times, expired = [], 0
        steps = [generator.choice([0, 1, 1, 2, 5, 30]) for _ in range(300)]
        times = list(pairwise(accumulate(steps)))
        await bring(ctx, dut, times[0][0])
        for now, then in times:
            store = generator.random() < 0.6
            span, _, waited = await present(ctx, dut, now, store=store, is_here=True, then=then)
            live = [
                n // cores
                for n, time in enumerate(stored_times)
                if now - time <= lifespan and n % cores == position
            ]
            mine = sum(n % cores == position for n in range(len(stored_times)))
            assert slots(parameters, span) == [n % ring for n in live]
            # One cycle per expired key beyond the first, one more if none is left, and nine at most
            # until a first key that is being stored, or one that has just been, is known.
            assert waited <= 9 + max(0, mine - len(live) - expired - 1) + (not live)
            expired = mine - len(live)
            if store:
                stored_times.append(now)

    run(parameters, position, body)


@pytest.mark.parametrize("leaving", [1, 2, 3])
def test_of_the_keys_that_leave_for_a_tuple_the_first_one_takes_no_cycle(leaving):
    """While one tuple is stored, one key leaves for the next; the one before still sees it."""
    parameters = tracker_parameters(1, 64)

    async def body(ctx, dut):
        await begin(ctx, dut, 4 * leaving, timed=True)
        await bring(ctx, dut, 0)
        cycles = 0
        for count in range(60 * leaving):
            now = count // leaving * leaving  # as many tuples at a time as time passes by then
            then = (count + 1) // leaving * leaving
            span, stored, waited = await present(ctx, dut, now, store=1, is_here=True, then=then)
            assert stored
            first = max(0, (count // leaving - 4) * leaving)
            assert slots(parameters, span) == [
                n % (2 * parameters.ring_rows) for n in range(first, count)
            ]
            if count > 20 * leaving:
                assert waited == (0 if count % leaving else leaving - 1)
                cycles += waited + 1
        assert cycles == (60 * leaving - 20 * leaving - 1) + 39 * (leaving - 1)

    run(parameters, 0, body)


def test_overflow_is_sticky_and_names_the_tuple_that_has_no_room():
    parameters = tracker_parameters(2, 4)

    async def body(ctx, dut):
        await begin(ctx, dut, 100, timed=True)
        for n in range(8):
            _, stored, _ = await present(ctx, dut, 0, store=1)
            assert stored == (n % 2 == 0)
        assert not ctx.get(dut.overflow)
        _, stored, _ = await present(ctx, dut, 0, store=1)  # the ninth: core 0 is full
        assert not stored
        await finish(ctx, dut)
        assert ctx.get(dut.overflow)
        await present(ctx, dut, 5_000, store=0)
        await finish(ctx, dut)
        assert ctx.get(dut.overflow)
        for timed in (False, True):
            await begin(ctx, dut, 5, timed=timed)
            await ctx.tick()
            assert ctx.get(dut.overflow)
        for forget in (0, 1):  # COORDINATE or DISTINCT, then CLEAR
            dut.turns.restart(5)
            ctx.set(dut.empty, 1)
            ctx.set(dut.forget, forget)
            await ctx.tick()
            ctx.set(dut.empty, 0)
            ctx.set(dut.forget, 0)
            await ctx.tick()
            assert ctx.get(dut.overflow) == (not forget)
            span, stored, _ = await present(ctx, dut, 0, store=1)
            assert slots(parameters, span) == []
            assert stored
            await finish(ctx, dut)

    run(parameters, 0, body)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_count_based_window_overflows_a_region_that_is_full_and_never_takes_what_it_lacks(cores):
    """As with fewer live cores than a window needs."""
    parameters = tracker_parameters(cores, 4)

    async def body(ctx, dut):
        await begin(ctx, dut, 9, timed=False)
        dut.turns.cores = 1  # this core takes every turn
        for n in range(9):
            span, stored, _ = await present(ctx, dut, 0, store=1)
            assert stored == (n < 4)
        await finish(ctx, dut)
        assert ctx.get(dut.overflow)
        for _ in range(30):  # more leave than have been stored
            span, _, _ = await present(ctx, dut, 0, store=1)
            assert len(slots(parameters, span)) <= 4
        await finish(ctx, dut)

    run(parameters, 0, body)


def test_exactly_expired_room_is_no_overflow():
    parameters = tracker_parameters(1, 3)

    async def body(ctx, dut):
        await begin(ctx, dut, 10, timed=True)
        for time in (0, 1, 2, 11, 12, 13):
            await present(ctx, dut, time, store=1)
        await finish(ctx, dut)
        assert not ctx.get(dut.overflow)
        await present(ctx, dut, 21, store=1)
        await finish(ctx, dut)
        assert ctx.get(dut.overflow)  # 11 .. 13 still live at 21

    run(parameters, 0, body)


def test_a_new_window_begins_empty_with_the_first_core():
    parameters = tracker_parameters(2, 4)

    async def body(ctx, dut):
        for _ in range(3):
            await present(ctx, dut, 0, store=1)
        await finish(ctx, dut)
        await begin(ctx, dut, 2, timed=False)
        span, stored, _ = await present(ctx, dut, 0, store=1)
        assert slots(parameters, span) == []
        assert stored

    run(parameters, 0, body)


def test_the_layout_of_a_pointer_tells_a_full_ring_from_an_empty_one():
    parameters = tracker_parameters(1, 15)
    assert 1 << pointer_layout(parameters)["row"].width == 2 * parameters.ring_rows


@pytest.mark.parametrize(
    ("cores", "size", "timed"), half([1, 2, 3], [(1, False), (4, False), (6, True)])
)
def test_a_probe_sees_the_window_before_or_after_the_tuple_stored_with_it(cores, size, timed):
    """What leaves for a later tuple, in the same cycle, has not left for the probe."""
    parameters = tracker_parameters(cores, 7).with_(engine="index", tuples_per_word=2)
    generator = random.Random(cores)

    async def body(ctx, dut):
        await begin(ctx, dut, size, timed=timed)
        ring = 2 * parameters.ring_rows
        window = []
        for count in range(60):
            now = 2 * count
            await present(ctx, dut, now, store=1, then=now + 9)
            window = [n for n in window if now - 2 * n <= size] if timed else window
            after = generator.randrange(2)
            ctx.set(dut.after, after)
            # The next tuple is at hand already, and may make keys leave.
            ctx.set(dut.present, 1)
            before, window = window, [*window, count]
            window = window if timed else window[-size:]
            seen = window if after else before
            expected = [n // cores % ring for n in seen if n % cores == cores - 1]
            assert slots(parameters, ctx.get(dut.seen)) == expected
            ctx.set(dut.present, 0)
            await finish(ctx, dut)

    run(parameters, cores - 1, body)
