# SPDX-License-Identifier: Apache-2.0
"""What a proof is written on: a component with arbitrary inputs, and what is claimed of it."""

from contextlib import contextmanager
import sys

from amaranth import *
from amaranth.back import rtlil
from amaranth.hdl import Fragment
from amaranth.utils import ceil_log2

__all__ = ["Bench"]


class Bench:
    """A top module with one clock, in which claims are made.

    The clock is a port: without a driver it would be a constant, every register would fold away,
    and everything would hold. There is no reset unless a proof drives :attr:`reset`: registers
    begin with their initial values.

    Attributes
    ----------
    m : Module
    reset : Signal
        Of the domain ``sync``.
    forgotten : list of str
        Submodules that begin in any state.
    """

    def __init__(self):
        self.m = Module()
        self.forgotten = []
        self._said = {}
        self._domain = ClockDomain("sync")
        self.m.domains.sync = self._domain
        self.reset = self._domain.rst
        self._checks = Module()
        self._checks.domains.checks = checks = ClockDomain("checks", reset_less=True, local=True)
        self._checks.d.comb += checks.clk.eq(self._domain.clk)
        self.m.submodules.checks = self._checks
        self._ports = [self._domain.clk]
        self._names = 0
        self._inside = {}

    def name(self, stem):
        """Return a name that no other signal of the bench has."""
        self._names += 1
        return f"{stem}_{self._names}"

    def add(self, component, name="dut"):
        """Put a component into the bench; return it."""
        with self._variables_of():
            fragment = Fragment.get(component, None)
        self.m.submodules[name] = fragment
        return component

    @contextmanager
    def _variables_of(self):
        """Keep the variables of every ``elaborate``, and what it returns."""
        before = sys.getprofile()

        def note(frame, event, returned):
            owner = frame.f_locals.get("self")
            if event == "return" and frame.f_code.co_name.startswith("elaborate"):
                known = self._inside.setdefault(id(owner), {"self": owner})
                known.update(frame.f_locals, **{frame.f_code.co_name: returned})

        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(before)

    def inside(self, component, *names):
        """Return a variable of a component's ``elaborate``, by the name that it has there.

        Invariants are about these: an induction begins in any state that they allow. Several names
        lead to a submodule of a submodule.
        """
        for name in names:
            component = self._inside[id(component)][name]
        return component

    def row(self, memory, address):
        """Return a row of a memory."""
        instance = self._inside[id(memory)]["elaborate"]
        place = Signal(ceil_log2(memory.depth), name=self.name("address"))
        row = Signal(Shape.cast(memory.shape).width, name=self.name("row"))
        self.m.d.comb += place.eq(address)
        instance.read_port(domain="comb", addr=place, data=row, en=C(1), transparent_for=())
        return row

    def any(self, shape=1, name="value"):
        """Return a signal that is arbitrary in every cycle."""
        return self._free(shape, f"any_{name}")

    def constant(self, shape=1, name="value"):
        """Return a signal that is arbitrary, but never changes."""
        return self._free(shape, f"constant_{name}")

    def _free(self, shape, name):
        signal = Signal(shape, name=self.name(name))
        if len(Value.cast(signal)):
            self._ports.append(Value.cast(signal))
        return signal

    def set(self, target, value):
        """Connect an input of the component."""
        self.m.d.comb += target.eq(value)

    def wire(self, value, name="wire"):
        """Return a signal that has this value."""
        signal = Signal(Value.cast(value).shape(), name=self.name(name))
        self.m.d.comb += signal.eq(value)
        return signal

    def view(self, like, value):
        """Return a value in the shape of another one."""
        signal = Signal.like(like, name=self.name("view"))
        self.m.d.comb += Value.cast(signal).eq(value)
        return signal

    def register(self, shape=1, name="register", init=0):
        """Return a register of the bench; reset of the component leaves it as it is."""
        return Signal(shape, name=self.name(name), init=init)

    def next(self, *statements):
        """Assign to registers of the bench."""
        self._checks.d.checks += statements

    def past(self, value, init=0):
        """Return what a value was a cycle ago, ``init`` in the first one."""
        value = Value.cast(value)
        before = self.register(value.shape(), "past", init=init)
        self.next(before.eq(value))
        return before

    def first(self):
        """Return a bit that is set in the first cycle only."""
        return self.past(C(0, 1), init=1)

    def assume(self, value):
        """Look only at what meets a condition."""
        self._state("assume", "", value)

    def claim(self, words, value):
        """Claim that a bit is always set."""
        self._state("claim", words, value)

    def invariant(self, value):
        """Claim what only says which states there are; no property by itself."""
        place = sys._getframe(1)
        words = f"invariant of {place.f_code.co_name}, line {place.f_lineno}"
        self._state("invariant", words, value)

    def cover(self, words, value):
        """Claim that a bit can be set some time: that the proof is not about nothing."""
        self._state("cover", words, value)

    def _state(self, kind, words, value):
        signal = Signal(name=self.name(kind))
        self.m.d.comb += signal.eq(Value.cast(value).any())
        self._said[signal.name] = words
        self._ports.append(signal)

    @property
    def claims(self):
        """What is claimed, in words."""
        return [words for name, words in self._said.items() if name.startswith("claim")]

    @property
    def covers(self):
        """What has to be possible, in words."""
        return [words for name, words in self._said.items() if name.startswith("cover")]

    def words(self, output):
        """Return what an output of the top module states."""
        return self._said[output] or output

    def rtlil(self):
        """Return the bench as RTLIL: statements are outputs, what is arbitrary are inputs."""
        return rtlil.convert(self.m, ports=self._ports)
