# SPDX-License-Identifier: Apache-2.0
"""An ECP5 for tests: a platform by its name alone, and models of its primitives."""

from amaranth import *
from amaranth.lib import memory
from amaranth.lib.data import ArrayLayout
from amaranth.sim import Simulator

__all__ = ["CCU2C", "ECP5", "DP16KD", "simulate"]


def simulate(dut, platform, body):
    """Run ``body(ctx)`` on a component elaborated for ``platform``."""
    simulator = Simulator(Fragment.get(dut, platform))
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()


class ECP5:
    """All that a component asks of a platform."""

    device = "LFE5U-85F"


class DP16KD(Elaboratable):
    """Takes the place of ``Instance``: what Yosys' ``lattice/brams_map_16kd.v`` says of the pins.

    Port A writes, port B reads through the output register, both equally wide. Pins without a
    meaning read as ones. A row that is written while it is read may show any value: here it shows
    its bits turned over.
    """

    UNUSED = {36: 5, 18: 4, 9: 3, 4: 2, 2: 1, 1: 0}

    def __init__(self, name, **pins):
        assert name == "DP16KD"
        self.settings = {name[2:]: value for name, value in pins.items() if name[:2] == "p_"}
        self.inputs = {name[2:]: value for name, value in pins.items() if name[:2] == "i_"}
        self.outputs = {name[2:]: value for name, value in pins.items() if name[:2] == "o_"}

    def bus(self, name, width):
        """The pins of a bus; those left open are zero."""
        return Cat(Value.cast(self.inputs.get(f"{name}{n}", 0))[:1] for n in range(width))

    def elaborate(self, platform):
        width = self.settings["DATA_WIDTH_A"]
        assert self.settings["DATA_WIDTH_B"] == width
        assert self.settings["REGMODE_B"] == "OUTREG"
        assert {self.settings[f"CSDECODE_{port}"] for port in "AB"} == {"0b000"}
        assert {self.inputs[name] for name in ("CEA", "CEB", "OCEA", "OCEB")} == {1}
        assert {self.inputs[name] for name in ("RSTA", "RSTB", "WEB")} == {0}
        assert not any(self.inputs.get(f"CS{port}{n}", 0) for port in "AB" for n in range(3))
        if width == 36:
            assert self.settings["REGMODE_A"] == "OUTREG"  # half of the word comes out there

        m = Module()
        enables = {36: 4, 18: 2}.get(width, 1)
        shape = ArrayLayout(width // enables, enables)
        unused = self.UNUSED[width]
        m.submodules.rows = rows = memory.Memory(shape=shape, depth=1 << 14 - unused, init=[])
        write = rows.write_port(granularity=1 if enables > 1 else None)
        read = rows.read_port()
        place, address = self.bus("ADA", 14), self.bus("ADB", 14)
        wea = Value.cast(self.inputs["WEA"])
        m.d.comb += [
            write.addr.eq(place[unused:]),
            write.en.eq((place[:enables] if enables > 1 else C(1)) & wea[:1].replicate(enables)),
            Value.cast(write.data).eq(Cat(self.bus("DIA", 18), self.bus("DIB", 18))),
            read.addr.eq(address[unused:]),
        ]
        hit = Signal()
        registered = Signal(width)
        m.d.sync += [
            hit.eq((write.en != 0) & (write.addr == read.addr)),
            registered.eq(Value.cast(read.data) ^ hit.replicate(width)),
        ]
        word = Cat(registered, Const(-1, 36))
        first = {"DOA": 0, "DOB": 18} if width == 36 else {"DOA": 36, "DOB": 0}
        for name, output in self.outputs.items():
            m.d.comb += output.eq(Cat(word, Const(-1, 36))[first[name[:3]] + int(name[3:])])
        return m


class CCU2C(Elaboratable):
    """Takes the place of ``Instance``: what Yosys' ``lattice/ccu2c_sim.vh`` says of the pins.

    A carry input that is left open may be anything: here it is one.
    """

    def __init__(self, name, **pins):
        assert name == "CCU2C"
        self.pins = pins

    def elaborate(self, platform):
        m = Module()
        carry = self.pins.get("i_CIN", Const(1))
        for n in range(2):
            a, b, c, d = (self.pins[f"i_{name}{n}"] for name in "ABCD")
            table = self.pins[f"p_INIT{n}"]
            independent = self.pins[f"p_INJECT1_{n}"] == "NO"
            propagated = table.bit_select(Cat(a, b, c, d), 1)
            generated = table[:4].bit_select(Cat(a, b), 1) & independent
            output = self.pins.get(f"o_S{n}")
            if output is not None:
                m.d.comb += output.eq(propagated ^ (carry & independent))
            carry = Mux(propagated, carry, generated)
        if "o_COUT" in self.pins:
            m.d.comb += self.pins["o_COUT"].eq(carry)
        return m
