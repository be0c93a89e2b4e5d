# SPDX-License-Identifier: Apache-2.0
"""Rows that tuples take in the cores of a low-latency handshake join while their expiry is late."""

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake import chain as expedited_core
from bench.handshake.layouts import RING_RESERVE
from bench.handshake.windows import HomeWindow
from hdl.families.choice import make_accelerator
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from hdl.words.results import ResultKind, result_word
from host.protocol.manifest import Manifest
from sim.scenarios.chain_answers import read_chain
from tests.bench.handshake.programs import Program, random_program
from tests.hdl.stream_bench import DeadlineError, StreamBench
from tests.hdl.test_accelerator import as_integers, as_rows

X8 = (KeyField(name="x", bits=8),)
R, S = 0, 1


def chain(cores, sub_window, kind=JoinParameters):
    """Return the parameters of a low-latency handshake join."""
    return kind.of(
        cores=cores, sub_window=sub_window, keys=X8, comparator="equality", fan_in=2,
        architecture=LOW_LATENCY,
    )  # fmt: skip


def most_rows(parameters):
    """Return the rows that the derivation in :mod:`bench.handshake.layouts` allows tuples."""
    return parameters.window.sub_window + 4 - 4 // parameters.cores


def program_of(parameters):
    """Return an empty program for a chain."""
    return Program(Manifest.from_dict(describe(parameters, "", verilog_file="")))


class TooSmall(JoinParameters):
    """Parameters of rings with one row less than derived."""

    @property
    def slack(self):
        return super().slack - 1


class Rooms:
    """The rows of both sides' tuples in every core, while a chain runs a program.

    Attributes
    ----------
    most : list of list of int
        Of each core, the most rows that tuples of R took in any cycle, and tuples of S.
    """

    def __init__(self, monkeypatch, parameters):
        self.parameters, self.windows = parameters, []
        self.most = [[0, 0] for _ in range(parameters.cores)]

        def made(*arguments):
            self.windows.append(HomeWindow(*arguments))
            return self.windows[-1]

        monkeypatch.setattr(expedited_core, "HomeWindow", made)

    async def watch(self, ctx):
        """Note how far the head of every window is ahead of its tail."""
        ends = [end for window in self.windows for end in (window.head, window.tail)]
        places = 1 << len(ends[0])
        while True:
            _, _, *values = await ctx.tick().sample(*ends)
            heads, tails = values[::2], values[1::2]
            for n, (head, tail) in enumerate(zip(heads, tails, strict=True)):
                used = (head - tail + places // 2) % places - places // 2
                core, side = divmod(n, 2)
                self.most[core][side] = max(self.most[core][side], used)

    def run(self, program, *, begin=0, deadline=20_000, stalls=0.0, seed=0):
        """Run a program, whose results are taken from cycle ``begin`` on, and check its answer."""
        dut = make_accelerator(self.parameters)
        layout = result_word(self.parameters)
        bench = StreamBench(dut, deadline=deadline, stalls=stalls, seed=seed)
        bench.source(dut.i, as_integers(program.packed()))
        received = bench.sink(
            dut.o, len(program.answer.pairs), begin=begin,
            weight=lambda word: layout.from_bits(word).kind == ResultKind.MARK,
        )  # fmt: skip
        bench.simulator.add_testbench(self.watch, background=True)
        bench.run()
        results = as_rows(received, program.manifest.result_word.columns)
        assert read_chain(program.manifest, results) == (program.answer, [])


def late_expiry(parameters, stored):
    """Return a program in which words that expire R fill the lane of S.

    Tuples of S match those of R in the last core only. As results are not taken, the lane of S is
    stuck there, and nowhere else; and tuples of R come that match nothing.
    """
    program, cores = program_of(parameters), parameters.cores
    # The oldest tuple that stays is one of the last core, which so keeps as many as it ever can.
    keys = [[int(n % cores == cores - 1)] for n in range(parameters.capacity + cores - 1)]
    program.tuples([R] * len(keys), keys, [0] * len(keys))
    program.tuples([S] * stored, [[1]] * stored, [0] * stored)
    burst = 4 * cores + 4
    program.tuples([R] * burst, [[2]] * burst, [0] * burst)
    program.control("FLUSH")
    return program


@pytest.mark.parametrize("cores", range(1, 40))
def test_cores_have_room_for_the_most_rows(cores):
    """Of all sub-windows, those are chosen that fill a ring of a power of two to the last row."""
    for rows in (32, 64, 512):
        parameters = chain(cores, rows - 3 - chain(cores, 1).slack)
        assert parameters.ring_rows == rows
        assert most_rows(parameters) == rows - RING_RESERVE - 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "sub_window", "stored"),
    [(1, 6, 6), (2, 4, 11), pytest.param(3, 2, 19, marks=pytest.mark.long)],
)
def test_the_most_rows_are_reached(monkeypatch, cores, sub_window, stored):
    """The rings are the smallest ones that the parameters allow, and filled as far as they can."""
    parameters = chain(cores, sub_window)
    rooms = Rooms(monkeypatch, parameters)
    rooms.run(late_expiry(parameters, stored), begin=350)
    assert rooms.most[-1][R] == most_rows(parameters)
    assert max(max(core) for core in rooms.most) == most_rows(parameters)


def full_windows(parameters):
    """Return a program whose FLUSH comes when the windows of both sides are full."""
    program, sides = program_of(parameters), [R, S] * parameters.capacity
    program.tuples(sides, [[n] for n in range(len(sides))], [0] * len(sides))
    program.control("FLUSH")
    return program


@pytest.mark.long
def test_one_row_less_stops_a_single_core(monkeypatch):
    """Its ring has no room while a window is full, so a fence is never taken."""
    parameters = chain(1, 6)
    Rooms(monkeypatch, parameters).run(full_windows(parameters), deadline=1_000)
    smaller = chain(1, 7, TooSmall)
    assert smaller.ring_rows == parameters.ring_rows
    with pytest.raises(DeadlineError):
        Rooms(monkeypatch, smaller).run(full_windows(smaller), deadline=1_000)


def check_random(cores, seed, stalls, timed):
    """Run a random program, in which no core may have more rows than derived."""
    parameters = chain(cores, (2, 7, 4, 2, 3)[seed % 5]).with_(timestamp_bits=16 * timed)
    with pytest.MonkeyPatch.context() as monkeypatch:
        rooms = Rooms(monkeypatch, parameters)
        program = random_program(program_of(parameters).manifest, seed, blocks=1, timed=timed)
        rooms.run(program, stalls=stalls, seed=seed)
    assert max(max(core) for core in rooms.most) <= most_rows(parameters)


@pytest.mark.few(1)
@pytest.mark.parametrize("cores", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_random_programs_need_no_more_rows(cores):
    check_random(cores, seed=cores, stalls=0.4, timed=cores == 2)


@pytest.mark.long
@settings(max_examples=40)
@given(
    cores=st.sampled_from([1, 2, 3, 4, 6]),
    seed=st.integers(0, 2**32),
    stalls=st.sampled_from([0.0, 0.3, 0.8]),
    timed=st.booleans(),
)
def test_many_random_programs_need_no_more_rows(cores, seed, stalls, timed):
    check_random(cores, seed, stalls, timed)


@pytest.mark.long
@pytest.mark.parametrize("stored", range(8, 20))
@pytest.mark.parametrize(("cores", "sub_window"), [(2, 3), (4, 3), (5, 4), (6, 3)])
def test_late_expiry_needs_no_more_rows(monkeypatch, cores, sub_window, stored):
    parameters = chain(cores, sub_window)
    rooms = Rooms(monkeypatch, parameters)
    rooms.run(late_expiry(parameters, stored), begin=500)
    assert max(max(core) for core in rooms.most) <= most_rows(parameters)
