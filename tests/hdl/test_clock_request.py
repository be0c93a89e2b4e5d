# SPDX-License-Identifier: Apache-2.0
"""Cores whose clocks stop when they do not ask for them behave like cores whose clocks run on."""

import random

from amaranth import *
from amaranth.sim import Simulator
import pytest

from bench.handshake import HANDSHAKE
from hdl.accelerator import Accelerator
from hdl.join_core import ClockRequest, JoinCore
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import input_word
from sim.link.simulation import simulate
from tests.hdl.input_words import both_word, control_word, integer, tuple_word

X8 = (KeyField(name="x", bits=8),)
SHAPES = {
    "scan": {"cores": 1, "sub_window": 6, "probes": 3, "lanes": 2, "probe_bits": 3},
    "timed scan": {"cores": 2, "sub_window": 5, "probes": 1, "timestamp_bits": 8},
    "digest": {"cores": 1, "sub_window": 6, "comparator": "equality", "digest_bits": 3},
    "timed index": {
        "engine": "index", "cores": 1, "sub_window": 5, "probes": 4, "timestamp_bits": 8,
    },
    "two in a word": {
        "engine": "index", "cores": 1, "sub_window": 9, "probes": 2, "tuples_per_word": 2,
        "timestamp_bits": 8,
    },
    "gates": {"cores": 1, "sub_window": 4, "timestamp_bits": 8, "failure_cycles": 400},
}  # fmt: skip


def parameters_of(shape, **changes):
    return JoinParameters.of(keys=X8, clock_requests=True, **{**SHAPES[shape], **changes})


class Stopped(JoinCore):
    """A core that changes no register in the cycles in which it does not ask for its clock."""

    def elaborate(self, platform):
        wanted = self.clock_request
        return EnableInserter({"sync": wanted, "local": wanted})(super().elaborate(platform))


def stream(parameters, random, count):
    """Words of a stream with few different keys, and all control words that a join may meet."""
    words, now = [control_word("PRECISION", 0, random.choice([1, 2, 5]))], 0
    window = ("LIFESPAN", 9) if parameters.timestamp_bits else ("WINDOW", 4)
    words += [control_word("BOUND_LOW", 0, 0), control_word("BOUND_HIGH", 0, 0)]
    words += [control_word(window[0], side, window[1]) for side in (0, 1)]
    for _ in range(count):
        now += random.choice([0, 0, 1, 3]) if now < 240 else 0
        key = {"x": random.randrange(4)}
        what = random.random()
        if what < 0.05:
            cores = random.sample(range(parameters.cores), random.randint(1, parameters.cores))
            words += [control_word("CORE", 0, core) for core in cores]
            words.append(control_word("SEGMENT"))
        elif what < 0.1:
            words.append(control_word("FLUSH"))
        elif what < 0.12:
            now = 0
            words.append(control_word("CLEAR"))
        elif what < 0.14 and parameters.has_gates:
            words.append(control_word(random.choice(["MASK", "UNMASK"]), 0, 0))
        elif what < 0.4 and parameters.engine.tuples_per_word == 2:
            other = {"x": random.randrange(4)}
            words.append(both_word(random.randrange(2), key, other, now, now))
        else:
            words.append(tuple_word(random.randrange(2), key, now))
    return [*words, control_word("FLUSH")]


class Twins:
    """Two accelerators with the same inputs, of which one has cores whose clocks stop."""

    def __init__(self, parameters, core=Stopped):
        self.parameters = parameters
        self.running, self.stopping = Accelerator(parameters), Accelerator(parameters)
        self.stopping.cores = [core(parameters) for _ in range(parameters.cores)]
        self.slept = [0] * parameters.cores
        self.results = 0

    def run(self, words, seed):
        """Send words in bursts between pauses; compare all outputs in all cycles."""
        m = Module()
        m.submodules.running, m.submodules.stopping = self.running, self.stopping
        chance = random.Random(seed)
        layout = input_word(self.parameters)
        words = [integer(layout, word) for word in words]

        async def bench(ctx):
            sent, quiet, pause = 0, 0, 0
            both = (self.running, self.stopping)
            while quiet < 80:
                if not pause and sent < len(words) and chance.random() < 0.07:
                    pause = chance.choice([3, 60, 160])
                offers = sent < len(words) and not pause
                pause = max(0, pause - 1)
                takes = chance.random() < 0.7
                for dut in both:
                    ctx.set(dut.i.valid, offers)
                    if offers:
                        ctx.set(Value.cast(dut.i.payload), words[sent])
                    ctx.set(dut.o.ready, takes)
                _, _, asked, vacant, other, *outputs = await ctx.tick().sample(
                    self.stopping.clock_request, self.stopping.vacant, self.running.vacant,
                    *(signal for dut in both for signal in
                      (dut.i.ready, dut.o.valid, Value.cast(dut.o.payload))),
                )  # fmt: skip
                ready, valid, result, *told = outputs
                assert vacant == other
                assert [ready, valid] == told[:2]
                assert not valid or result == told[2]
                for core in range(self.parameters.cores):
                    self.slept[core] += not asked >> core & 1
                sent += offers and ready
                self.results += valid and takes
                quiet = 0 if offers or valid or pause else quiet + 1
            assert not asked  # nothing happens any more, so no core needs its clock

        simulate(m, bench, deadline=20_000)


#: Shapes that are quick enough to be tried each time.
QUICK = ("timed index",)


@pytest.mark.long
@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=[pytest.mark.long] * (one not in QUICK)) for one in SHAPES]
)
def test_a_clock_that_is_not_asked_for_is_not_missed(shape):
    parameters = parameters_of(shape)
    twins = Twins(parameters)
    twins.run(stream(parameters, random.Random(shape), 60), seed=shape)
    assert twins.results > 30
    assert min(twins.slept) > 30


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_clock_is_not_missed_in_any_of_many_streams(shape, seed):
    parameters = parameters_of(
        shape, probes=1 + seed % 4, sub_window=5 + seed % 3, cores=1 + seed % 3
    )
    Twins(parameters).run(stream(parameters, random.Random(seed), 400), seed)


@pytest.mark.long
def test_a_clock_that_stops_too_early_is_missed():
    class Hasty(Stopped):
        def elaborate_clock(self, m):
            super().elaborate_clock(m)
            m.submodules.clock.linger = 1

    parameters = parameters_of("timed index")
    twins = Twins(parameters, Hasty)
    with pytest.raises(AssertionError):
        twins.run(stream(parameters, random.Random(1), 60), seed=1)


@pytest.mark.few(3)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7, 8, 12])
def test_a_request_rises_at_once_and_lingers(stages):
    dut = ClockRequest(stages)
    assert dut.latency == 0
    assert stages < dut.linger <= 2 * (stages + 1)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        lingered = 0
        while ctx.get(dut.wanted):  # after reset, as after something that happened
            lingered += 1
            await ctx.tick()
        assert lingered == dut.linger
        for pause in (0, 1, dut.linger - 1, dut.linger, dut.linger + 5):
            ctx.set(dut.active, 1)
            assert ctx.get(dut.wanted)
            await ctx.tick()
            ctx.set(dut.active, 0)
            for n in range(pause):
                assert ctx.get(dut.wanted) == (n < dut.linger)
                await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run_until(1e-3)


def test_vacant_says_that_the_windows_of_a_core_have_expired():
    """Core 1 leaves the turns; it answers until its last tuple has expired, and is vacant then."""
    parameters = parameters_of("timed scan", cores=2)
    dut = Accelerator(parameters)
    layout = input_word(parameters)
    words = [control_word("LIFESPAN", side, 10) for side in (0, 1)]
    words += [tuple_word(0, {"x": n}, 5) for n in range(2)]  # core 0 and core 1 store one each
    words += [control_word("CORE", 0, 0), control_word("SEGMENT")]
    seen = []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)

        async def send(words):
            for word in words:
                ctx.set(Value.cast(dut.i.payload), integer(layout, word))
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            await ctx.tick().repeat(60)

        await send(words)
        for now in (15, 16):
            await send([tuple_word(1, {"x": 1}, now)])
            seen.append(ctx.get(dut.vacant))

    simulate(dut, bench, deadline=2_000)
    assert seen == [0b00, 0b10]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clock_requests": 1}, r"must be one of \(False, True\), not 1"),
        ({"architecture": HANDSHAKE}, "needs parameter 'clock_requests' to be False, not True"),
        ({"store": "external"}, "Store 'external' needs parameter 'clock_requests' to be False"),
    ],
)
def test_an_accelerator_that_cannot_ask_is_told(changes, message):
    with pytest.raises(ValueError, match=message):
        JoinParameters.of(**{"clock_requests": True, **changes})


def test_stages_are_at_least_one():
    with pytest.raises(ValueError, match="at least one stage, not 0"):
        ClockRequest(0)
