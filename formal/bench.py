# SPDX-License-Identifier: Apache-2.0
"""Bench of a proof: a component with arbitrary inputs, and the claims about it."""

from contextlib import contextmanager
import sys

from amaranth import *
from amaranth.back import rtlil
from amaranth.hdl import Fragment
from amaranth.utils import ceil_log2

__all__ = ["Bench"]


class Bench:
    """A top module with one clock, in which claims are made.

    The clock is a port. An undriven clock would be a constant, so that every register would fold
    away and every claim would hold. There is no reset unless a proof drives :attr:`reset`;
    registers start with their initial values.

    Attributes
    ----------
    m : Module
    reset : Signal
        Reset of the domain ``sync``.
    forgotten : list of str
        Submodules whose registers start in any state.
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

    def add(self, component, name="dut", *, platform=None):
        """Add a component, as it is on a platform, to the bench, and return it."""
        with self._variables_of():
            fragment = Fragment.get(component, platform)
        self.m.submodules[name] = fragment
        return component

    @contextmanager
    def _variables_of(self):
        """Record the local variables of every ``elaborate`` method, and its return value."""
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
        """Return a local variable of a component's ``elaborate``, by its name there.

        Invariants refer to such variables, as an induction starts in any state that the invariants
        allow. Several names lead to a submodule of a submodule.
        """
        for name in names:
            component = self._inside[id(component)][name]
        return component

    def row(self, memory, address):
        """Return the contents of a memory at ``address``."""
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
        """Return a signal that is arbitrary but never changes."""
        return self._free(shape, f"constant_{name}")

    def _free(self, shape, name):
        signal = Signal(shape, name=self.name(name))
        if len(Value.cast(signal)):
            self._ports.append(Value.cast(signal))
        return signal

    def set(self, target, value):
        """Drive an input of the component."""
        self.m.d.comb += target.eq(value)

    def drive(self, component, **values):
        """Drive inputs of a component by their names."""
        for name, value in values.items():
            self.set(getattr(component, name), value)

    def wire(self, value, name="wire"):
        """Return a signal with this value."""
        signal = Signal(Value.cast(value).shape(), name=self.name(name))
        self.m.d.comb += signal.eq(value)
        return signal

    def view(self, like, value):
        """Return a value in the shape of another one."""
        signal = Signal.like(like, name=self.name("view"))
        self.m.d.comb += Value.cast(signal).eq(value)
        return signal

    def register(self, shape=1, name="register", init=0):
        """Return a register of the bench, which a reset of the component does not affect."""
        return Signal(shape, name=self.name(name), init=init)

    def next(self, *statements):
        """Assign to registers of the bench."""
        self._checks.d.checks += statements

    def past(self, value, init=0):
        """Return the value of the previous cycle, or ``init`` in the first cycle."""
        value = Value.cast(value)
        before = self.register(value.shape(), "past", init=init)
        self.next(before.eq(value))
        return before

    def first(self):
        """Return a bit that is set in the first cycle only."""
        return self.past(C(0, 1), init=1)

    def assume(self, value):
        """Restrict the proof to behaviours in which a condition always holds."""
        self._state("assume", "", value)

    def claim(self, words, value):
        """Claim that a bit is always set."""
        self._state("claim", words, value)

    def invariant(self, value):
        """Claim a condition that restricts the states of an induction; it counts as no property."""
        place = sys._getframe(1)
        words = f"invariant of {place.f_code.co_name}, line {place.f_lineno}"
        self._state("invariant", words, value)

    def cover(self, words, value):
        """Claim that a bit can be set at some time, which shows that the proof is not vacuous."""
        self._state("cover", words, value)

    def _state(self, kind, words, value):
        signal = Signal(name=self.name(kind))
        self.m.d.comb += signal.eq(Value.cast(value).any())
        self._said[signal.name] = words
        self._ports.append(signal)

    @property
    def claims(self):
        """Return the claims in words."""
        return [words for name, words in self._said.items() if name.startswith("claim")]

    @property
    def covers(self):
        """Return the covers in words."""
        return [words for name, words in self._said.items() if name.startswith("cover")]

    def words(self, output):
        """Return the words of a statement, given the name of its output of the top module."""
        return self._said[output] or output

    def rtlil(self):
        """Return the bench as RTLIL, with statements as outputs and arbitrary values as inputs."""
        return rtlil.convert(self.m, ports=self._ports)
