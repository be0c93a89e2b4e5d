# SPDX-License-Identifier: Apache-2.0
from amaranth import *
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from formal.mutation import mutants_of


def either(a, b):
    return a | b


class Toy(wiring.Component):
    a: In(1)
    b: In(1)
    o: Out(1)
    p: Out(1)

    def elaborate(self, platform):
        m = Module()
        held = Signal(init=1)
        with m.If(self.a & ~self.b):
            m.d.sync += held.eq(0)
        m.d.comb += [
            self.o.eq(held),
            self.p.eq(Mux(self.a == self.b, held, either(self.a, self.b))),
        ]
        return m


CHOICE = "Mux(self.a == self.b, held, either(self.a, self.b))"


def names(target, **options):
    return {mutant.name.partition(": ")[2] for mutant in mutants_of(target, **options)}


def test_every_change_is_named():
    assert names(Toy) == {
        "If(self.a & ~self.b) -> If(1)",
        "self.a & ~self.b -> self.a | ~self.b",
        "~self.b -> self.b",
        "without held.eq(0)",
        "held.eq(0) -> held.eq(1)",
        "init=1 -> init=0",
        "without self.o.eq(held)",
        f"without self.p.eq({CHOICE})",
        f"self.o.eq(held) and self.p.eq({CHOICE}) -> exchanged",
        f"{CHOICE} -> choices swapped",
        "self.a == self.b -> self.a != self.b",
    }
    assert names(either) == {"a | b -> a & b"}
    assert names(Toy, of_reset=True) == {"Signal(init=1) -> reset_less"}


def test_a_mutant_is_there_only_while_it_is_applied():
    def text():
        return rtlil.convert(Toy(), emit_src=False)

    before = text()
    for target in (Toy, either):
        for mutant in mutants_of(target):
            with mutant.applied():
                assert text() != before, mutant.name
            assert text() == before


def test_one_method_has_mutants_of_its_own():
    assert names(Toy.elaborate) == names(Toy)
