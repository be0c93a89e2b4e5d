# SPDX-License-Identifier: Apache-2.0
"""The shell around a stand-in whose outputs show its inputs, and around an accelerator."""

import random

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
import pytest

from hdl.accelerator import Accelerator
from hdl.fpga.critical_path import Hierarchy
from hdl.fpga.shell import SHELL, RoutingShell
from hdl.parameters import JoinParameters, KeyField
from hdl.shells.merged_inputs import MergedInputs
from hdl.verilog.conversion import to_verilog

CYCLES = 1_200
SMALLEST = JoinParameters.of(
    cores=1, sub_window=1, keys=(KeyField(name="x", bits=1),), probe_bits=0, comparator="equality"
)


@pytest.fixture(scope="module")
def verilog():
    return to_verilog(RoutingShell(SMALLEST), name=SHELL)


@pytest.mark.long
def test_the_shell_has_few_pads_and_the_whole_accelerator(verilog):
    ports = verilog.partition(f"module {SHELL}(")[2].partition(")")[0].split(", ")
    assert ports == ["clk", "rst", "capture", "data_in", "data_out"]
    hierarchy = Hierarchy(verilog, top=SHELL)
    assert hierarchy.instances[SHELL] == {"accelerator": "accelerator"}
    assert hierarchy.counts()["region"] >= 2


@pytest.mark.long
def test_every_port_of_the_accelerator_meets_a_register(verilog):
    inputs, outputs = ports_of(Accelerator(SMALLEST))
    shell = verilog.partition(f"module {SHELL}(")[2]
    assert f"reg [{len(inputs) - 1}:0] shifted" in shell
    assert f"reg [{len(outputs) - 1}:0] taken" in shell


@pytest.mark.long
def test_inputs_that_are_merged_stand_in_the_place_of_the_accelerators():
    parameters = SMALLEST.with_(timestamp_bits=2)
    verilog = to_verilog(RoutingShell(parameters, inputs=2), name=SHELL)
    names = {"accelerator": "accelerator", "merged": "merged_inputs"}
    assert Hierarchy(verilog, top=SHELL).instances[SHELL] == names
    merge, accelerator = MergedInputs(parameters), Accelerator(parameters)
    # The stream between them: its payload, and a valid and a ready, is at no pad.
    between = len(Value.cast(accelerator.i.payload)) + 2
    inputs, outputs = (
        len(of_merge) + len(of_accelerator) - between
        for of_merge, of_accelerator in zip(ports_of(merge), ports_of(accelerator), strict=True)
    )
    shell = verilog.partition(f"module {SHELL}(")[2]
    assert f"reg [{inputs - 1}:0] shifted" in shell
    assert f"reg [{outputs - 1}:0] taken" in shell


def ports_of(component):
    """All inputs of a component, and all of its outputs, each as one value."""
    ports = {In: [], Out: []}
    for _, member, value in component.signature.flatten(component):
        ports[member.flow].append(Value.cast(value))
    return Cat(ports[In]), Cat(ports[Out])


class StandIn(wiring.Component):
    """Shows its inputs and its reset at its outputs in the same cycle, and counts cycles."""

    def __init__(self, width):
        self.latency = 0
        layout = data.StructLayout({"flag": 1, "value": signed(width)})
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "addr": In(width),
                "reset": Out(1),
                "count": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # The simulator's inner clock comes after the outer one's edge, so no register of this one
        # may depend on registers of the shell.
        count = Signal(8, reset_less=True)
        m.d.sync += count.eq(count + 1)
        m.d.comb += [
            self.o.valid.eq(~self.i.valid),
            self.o.payload.flag.eq(self.i.payload.flag ^ self.o.ready),
            self.o.payload.value.eq(self.i.payload.value - self.addr),
            self.i.ready.eq(self.o.ready),
            self.reset.eq(ResetSignal()),
            self.count.eq(count),
        ]
        return m


def shown(stand_in, word, reset, cycle):
    """The outputs of a stand-in with these bits at its inputs, first port lowest."""
    width = len(stand_in.addr)
    names = ["i_flag", "i_value", "i_valid", "o_ready", "addr"]
    bits = dict(zip(names, split(word, [1, width, 1, 1, width]), strict=True))
    value = (bits["i_value"] - bits["addr"]) % (1 << width)
    return join(
        (bits["o_ready"], 1),
        (bits["i_flag"] ^ bits["o_ready"], 1),
        (value, width),
        (1 - bits["i_valid"], 1),
        (reset, 1),
        (cycle % 256, 8),
    )


def split(number, widths):
    """Fields of an integer, the lowest first."""
    fields = []
    for width in widths:
        fields.append(number & ((1 << width) - 1))
        number >>= width
    return fields


def join(*fields):
    """The integer that has these fields of so many bits, the lowest first."""
    number = place = 0
    for value, width in fields:
        number |= value << place
        place += width
    return number


@pytest.mark.parametrize("width", [1, 2, 3, 13])
def test_bits_come_in_and_go_out_in_the_stated_cycles(width, monkeypatch):
    """Held against what the pads had in the cycles before; captured at random, also too early."""
    stand_in = StandIn(width)
    monkeypatch.setattr("hdl.fpga.shell.make_accelerator", lambda parameters: stand_in)
    shell, reset = RoutingShell(SMALLEST), Signal()
    inputs, outputs = (len(ports) for ports in ports_of(stand_in))
    generator = random.Random(width)
    m = Module()
    m.submodules.shell = shell
    m.domains.sync = ClockDomain()
    m.d.comb += ResetSignal().eq(reset)
    bits, resets, words, captures = [], [], [], []  # of every cycle

    async def bench(ctx):
        last = None  # the cycle of the capture whose bits leave
        for cycle in range(CYCLES):
            seen = cycle - shell.latency
            if seen >= 0 and captures[seen]:
                last = seen
            if last is not None:
                place = outputs - 1 - (seen - last)
                assert ctx.get(shell.data_out) == (words[last] >> place & 1 if place >= 0 else 0)
            # The latest bit is the lowest input.
            word = join(*((bit, 1) for bit in bits[: -inputs - 1 : -1]))
            words.append(shown(stand_in, word, sum(resets[-2:-1]), cycle))
            bits.append(generator.randrange(2))
            resets.append(int(generator.random() < 0.1))
            captures.append(generator.random() < (0.02 if cycle < CYCLES // 2 else 0.3))
            ctx.set(shell.data_in, bits[-1])
            ctx.set(reset, resets[-1])
            ctx.set(shell.capture, captures[-1])
            await ctx.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
