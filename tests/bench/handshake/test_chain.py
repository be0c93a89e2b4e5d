# SPDX-License-Identifier: Apache-2.0
"""A row of cores, driven from both ends without a coordinator."""

from itertools import pairwise

from amaranth.hdl import Cat, Value
import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.chain import Chain, InFlight
from bench.handshake.layouts import LaneKind, chain_result, lane_word
from hdl.parameters import JoinParameters, KeyField
from tests.halves import half
from tests.hdl.input_words import integer
from tests.hdl.stream_bench import StreamBench

CHAINS = (HANDSHAKE, LOW_LATENCY)
R, S = 0, 1
X8 = (KeyField(name="x", bits=8),)


def parameters_of(architecture, cores):
    """Parameters of a chain whose single core has room for all tuples of a test; none leaves."""
    return JoinParameters.of(
        cores=cores, sub_window=15, keys=X8, comparator="equality", architecture=architecture
    )


class Ends:
    """Words for both lanes of a chain, and what its cores find.

    Attributes
    ----------
    results : list of lists
        What every core has found for tuples of R and for those of S, in turn.
    taken : list
        Words that were taken of R's lane and of S's.
    compared : list
        Comparisons of every core for tuples of R and for those of S, in turn.
    """

    def __init__(self, architecture, cores, *, stalls=0.0, deadline=3_000):
        self.parameters = parameters_of(architecture, cores)
        self.dut = Chain(self.parameters)
        self.bench = StreamBench(self.dut, deadline=deadline, stalls=stalls, seed=cores)
        self.results = [self.bench.sink(port, 0) for port in self.dut.results]
        self.taken, self.compared = [0, 0], [0] * (2 * cores)
        self.bench.simulator.add_testbench(self.watch, background=True)

    async def watch(self, ctx):
        """Count what is taken and compared."""
        counts = [activity.comparisons for activity in self.dut.activity]
        while True:
            *_, taken, compared = await ctx.tick().sample(self.dut.taken, Cat(counts))
            for lane in (R, S):
                self.taken[lane] += taken >> lane & 1
            for n in range(len(counts)):
                self.compared[n] += compared >> n * len(counts[0]) & 1

    async def send(self, ctx, lane, words):
        """Send words in a lane, each with its kind and its content."""
        port = self.dut.lanes[lane]
        for kind, content in words:
            while self.bench.pauses():
                await ctx.tick()
            word = integer(lane_word(self.parameters), {"kind": kind, **content})
            ctx.set(Value.cast(port.payload), word)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    def tuple(self, x, before=0):
        """A tuple, as a lane has it."""
        own = {"homeless": 1, "before": before}
        if not self.parameters.arrangement.expedited:
            own = {}
        return LaneKind.TUPLE, {"body": {"tuple": {"key": {"x": x}}}, **own}

    async def marks(self, ctx, *sides):
        """Wait until every core has shown a mark for each of some sides."""
        layout = chain_result(self.parameters)
        ports = [port for n, port in enumerate(self.results) if n % 2 in sides]
        while not all(any(layout.from_bits(word).mark for word in port) for port in ports):
            await ctx.tick()

    def pairs(self, port):
        """The pairs of a port, with the side that it names."""
        words = map(chain_result(self.parameters).from_bits, self.results[port])
        return [(word.side, word.pair.r, word.pair.s) for word in words if not word.mark]

    def run(self, script):
        """Run a script, and then for some time in which nothing may come."""

        async def process(ctx):
            await script(ctx)
            self.bench.done()

        self.bench.spawn(process)
        self.bench.run(extra_cycles=40)


FENCE = (LaneKind.FENCE, {})
EXPIRE = (LaneKind.EXPIRE, {})
#: Cores and stalls of the longest chain, which takes as long as the others together.
FIVE = pytest.param(5, 0.3, marks=pytest.mark.long)
#: Five cores and either side.
FIVES = [pytest.param(5, 0.2, side, marks=pytest.mark.long) for side in (R, S)]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("cores", "stalls", "prober"),
    [*half([(1, 0.0), (2, 0.4), (3, 0.0)], [R, S]), *FIVES],
)
def test_every_core_keeps_its_own_tuples_and_reports_pairs_with_them(cores, stalls, prober):
    """In the low-latency handshake join, where the core of a tuple is known by its number."""
    ends, kept = Ends(CHAINS[1], cores, stalls=stalls), 1 - prober
    stored = 2 * cores + 1

    async def script(ctx):
        await ends.send(ctx, kept, [ends.tuple(n) for n in range(stored)] + [FENCE])
        await ends.marks(ctx, kept)  # all are at home now
        probes = [ends.tuple(stored - 1 - n, before=stored) for n in range(stored)]
        await ends.send(ctx, prober, [*probes, FENCE])
        await ends.marks(ctx, R, S)

    ends.run(script)
    assert ends.taken == [stored + 1] * 2
    for n in range(cores):
        found = [(stored - 1 - own, own) for own in reversed(range(n, stored, cores))]
        pairs = [(prober, *(pair if prober == R else pair[::-1])) for pair in found]
        assert ends.pairs(2 * n + prober) == pairs
        assert ends.pairs(2 * n + kept) == []
        assert ends.compared[2 * n + prober] == stored * len(found)
        assert ends.compared[2 * n + kept] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(("cores", "stalls"), [(1, 0.2), (2, 0.0), (3, 0.0), FIVE])
def test_tuples_that_cross_inside_the_chain_meet_once(cores, stalls):
    """A tuple enters when the other side's before it has been taken, as the coordinator does it."""
    ends, count = Ends(CHAINS[1], cores, stalls=stalls), 15

    async def script(ctx):
        for n in range(count):
            for lane, before in ((R, n), (S, n + 1)):
                while ends.taken[1 - lane] < before:
                    await ctx.tick()
                await ends.send(ctx, lane, [ends.tuple(n % 2, before=before)])
        for lane in (R, S):
            await ends.send(ctx, lane, [FENCE])
        await ends.marks(ctx, R, S)

    ends.run(script)
    pairs = [pair[1:] for port in range(2 * cores) for pair in ends.pairs(port)]
    expected = [(r, s) for r in range(count) for s in range(count) if r % 2 == s % 2]
    assert sorted(pairs) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("cores", [2, 3, pytest.param(5, marks=pytest.mark.long)])
def test_the_last_core_remembers_nothing_in_flight(cores):
    """It has no neighbour that would acknowledge tuples of S, so these must not fill it."""
    ends = Ends(CHAINS[1], cores)
    stored = (1 << InFlight.BITS) + 2

    async def script(ctx):
        await ends.send(ctx, S, [ends.tuple(1) for _ in range(stored)] + [FENCE])
        await ends.marks(ctx, S)
        await ends.send(ctx, R, [ends.tuple(1, before=stored), FENCE])
        await ends.marks(ctx, R)

    ends.run(script)
    pairs = [pair[1:] for port in range(2 * cores) for pair in ends.pairs(port)]
    assert sorted(pairs) == [(0, s) for s in range(stored)]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "stalls", "side"),
    [*half([(1, 0.3), (2, 0.0), (3, 0.4)], [R, S]), *FIVES],
)
def test_tuples_of_the_handshake_join_spread_over_the_cores(cores, stalls, side):
    """In the end no core holds more than the neighbour that gets its tuples, or much less."""
    ends, count = Ends(CHAINS[0], cores, stalls=stalls), 4 * cores
    held = []

    async def script(ctx):
        await ends.send(ctx, side, [ends.tuple(n) for n in range(count)])
        await ctx.tick().repeat(60 * cores)
        held.extend(ctx.get(core.held_o[side]) for core in ends.dut.cores)
        assert not any(ctx.get(core.held_o[1 - side]) for core in ends.dut.cores)

    ends.run(script)
    assert sum(held) == count
    assert ends.taken[side] == count
    way = held[::-1] if side == R else held  # as tuples flow
    assert all(0 <= there - here <= 2 for here, there in pairwise(way))


@pytest.mark.few(1)
@pytest.mark.parametrize(("cores", "stalls"), [(1, 0.2), (2, 0.0), (3, 0.4), FIVE])
def test_tuples_of_the_handshake_join_meet_once_while_they_leave(cores, stalls):
    """Words that expire all tuples pull them through the chain, so that each pair is found."""
    ends, count = Ends(CHAINS[0], cores, stalls=stalls, deadline=6_000), 2 * cores + 1

    async def script(ctx):
        for n in range(count):
            for lane in (R, S):
                await ends.send(ctx, lane, [ends.tuple(n % 3)])
        for _ in range(count):
            await ends.send(ctx, S, [EXPIRE])
        for _ in range(count):
            await ends.send(ctx, R, [EXPIRE])
        for lane in (R, S):
            await ends.send(ctx, lane, [FENCE])
        await ends.marks(ctx, R, S)

    ends.run(script)
    pairs = [pair for port in range(2 * cores) for pair in ends.pairs(port)]
    expected = [(r, s) for r in range(count) for s in range(count) if r % 3 == s % 3]
    assert sorted(pair[1:] for pair in pairs) == expected
    for port in range(2 * cores):
        assert {side for side, *_ in ends.pairs(port)} <= {port % 2}
    assert ends.taken == [2 * count + 1] * 2


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "cores", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 5))]
)
def test_a_core_is_reset_by_its_own_bit(cores):
    """The one that is reset has forgotten its tuples, the others have not."""
    for reset in {0, cores - 1}:
        ends, stored = Ends(CHAINS[1], cores), 2 * cores

        async def script(ctx, ends=ends, stored=stored, reset=reset):
            await ends.send(ctx, S, [ends.tuple(7) for _ in range(stored)])
            await ctx.tick().repeat(10 * cores)
            ctx.set(ends.dut.resets[reset], 1)
            await ctx.tick().repeat(16)
            ctx.set(ends.dut.resets[reset], 0)
            await ctx.tick().repeat(16)
            await ends.send(ctx, R, [ends.tuple(7, before=stored), FENCE])
            await ends.send(ctx, S, [FENCE])
            await ends.marks(ctx, R, S)

        ends.run(script)
        keepers = {pair[2] % cores for port in range(2 * cores) for pair in ends.pairs(port)}
        assert keepers == set(range(cores)) - {reset}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("prober", "cores"),
    half([R, S], [2, 1, 5, 3], of=4),
)
def test_a_pair_is_found_after_the_stated_cycles(cores, prober):
    """A word takes a cycle into the first core, which the latency counts, and two to each next."""
    ends, kept, waits = Ends(CHAINS[1], cores), 1 - prober, []

    async def script(ctx):
        await ends.send(ctx, kept, [ends.tuple(n) for n in range(cores)])
        for home in range(cores):
            await ctx.tick().repeat(10 * cores)
            port = ends.dut.results[2 * home + prober]
            await ends.send(ctx, prober, [ends.tuple(home, before=cores)])
            waits.append(0)
            while not ctx.get(port.valid):
                waits[-1] += 1
                await ctx.tick()

    ends.run(script)
    hops = [cores - 1 - home if prober == R else home for home in range(cores)]
    # Only a tuple of R has the stage in which it meets others.
    latency = ends.dut.latency - (prober == S)
    assert waits == [2 * hop + latency for hop in hops]
