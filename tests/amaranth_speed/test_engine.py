# SPDX-License-Identifier: Apache-2.0
import io
import random

from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator, pysim

from tests.amaranth_speed.engine import Engine

#: Amaranth's own engine.
(OWN,) = Engine.__mro__[1:2]


class Circuit(Elaboratable):
    """Logic, registers of both edges, an asynchronous reset and a memory that others read."""

    def __init__(self):
        self.inputs = [Signal(8, name=name) for name in ("a", "b", "late")]
        self.output = Signal(8)
        self.reset = Signal()

    def elaborate(self, platform):
        a, b, late = self.inputs
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.domains.fall = fall = ClockDomain(clk_edge="neg", async_reset=True)
        m.d.comb += [fall.clk.eq(sync.clk), fall.rst.eq(self.reset)]
        m.submodules.memory = memory = Memory(shape=8, depth=5, init=[3, 1])
        write, read = memory.write_port(), memory.read_port()
        at_once = memory.read_port(domain="comb")
        held, chain = Signal(8, init=9), Signal(8)
        m.d.fall += held.eq(held + a)
        m.d.sync += chain.eq(chain ^ b ^ held)
        m.d.comb += [
            write.addr.eq(a[:3]), write.data.eq(chain), write.en.eq(b[0]),
            read.addr.eq(b[:3]), at_once.addr.eq(late[:3]),
            self.output.eq(read.data + at_once.data + held + (late << 1)),
        ]  # fmt: skip
        return m


def trace(engine, *, vcd=None):
    """Return the output of a circuit in random cycles, after each input that is set."""
    circuit, draw, seen = Circuit(), random.Random(5), []
    simulator = Simulator(circuit, engine=engine)
    simulator.add_clock(1e-6)
    echoed = Signal(8)

    async def echo(ctx):
        async for value, *_ in ctx.changed(circuit.output):
            ctx.set(echoed, value ^ 1)

    async def bench(ctx):
        for _ in range(200):
            for signal in draw.sample(circuit.inputs, 2):
                ctx.set(signal, draw.randrange(256))
                seen.append((ctx.get(circuit.output), ctx.get(echoed)))
            ctx.set(circuit.reset, draw.random() < 0.1)
            _, _, value = await ctx.tick().sample(circuit.output)
            seen.append((value, ctx.get(circuit.output[2:5]), ctx.get(echoed)))

    simulator.add_process(echo)
    simulator.add_testbench(bench)
    if vcd is None:
        simulator.run()
        simulator.reset()
        draw.seed(5)
        simulator.run()
    else:
        with simulator.write_vcd(vcd):
            simulator.run()
    return seen


def test_a_circuit_does_the_same_as_with_amaranths_own_engine(own_amaranth):
    with own_amaranth():
        expected = trace(pysim.PySimEngine)
    assert pysim.PySimEngine is Engine
    assert len(set(expected)) > 100
    assert trace(Engine) == expected


def changes_of(waves):
    """Return the lines of a file of waves for each time, in an order of their own."""
    _, text = waves.split("$enddefinitions", 1)
    return [sorted(part.splitlines()) for part in text.split("\n#")]


def test_waves_are_those_of_amaranths_own_engine(own_amaranth):
    files = [io.StringIO(), io.StringIO()]
    with own_amaranth():
        trace(pysim.PySimEngine, vcd=files[0])
    trace(Engine, vcd=files[1])
    own, other = (changes_of(file.getvalue()) for file in files)
    assert other == own
    assert len(own) > 400
