# SPDX-License-Identifier: Apache-2.0
"""The join predicate: preparing a probe once, comparing it with a stored key every cycle."""

import importlib

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import (
    Control,
    bound_shape,
    control_layout,
    criterion_layout,
    key_layout,
    stored_layout,
)

__all__ = ["Comparator", "ProbePreparation", "load_predicate"]


def load_predicate(name):
    """Return the function that ``"module:function"`` names.

    Raises
    ------
    ValueError
        If there is no such function.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"Predicate {name!r} is not an importable 'module:function'") from error


class ProbePreparation(wiring.Component):
    """Turn a probe's key into the criterion that stored keys are compared with.

    For a band, ``low <= r - s <= high`` becomes a range of stored keys: ``r - high .. r - low`` for
    a probe of R, ``s + low .. s + high`` for one of S, clamped to the field; a range beyond the
    field becomes one that no key meets. Both the range and the key itself, as it is stored, lose
    their sign (see :func:`hdl.layouts.stored_layout`). Bounds are registers, open after reset, set
    by control words. Other comparators use the key as it is.

    Latency: 0 cycles. Throughput: 1 probe per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S.

    Members
    -------
    configure : In(1)
        ``control`` is executed.
    control : In
    key : In
        Key of a tuple.
    criterion : Out
        What the tuple as a probe compares stored keys with.
    stored : Out
        What it leaves in the ring.
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = 0
        super().__init__(
            {
                "configure": In(1),
                "control": In(control_layout(parameters)),
                "key": In(key_layout(parameters)),
                "criterion": Out(criterion_layout(parameters)),
                "stored": Out(stored_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.comparator != "band":
            m.d.comb += [self.criterion.eq(self.key), self.stored.eq(self.key)]
            return m

        for index, field in enumerate(self.parameters.keys):
            shape = bound_shape(field)
            low = Signal(shape, init=-(1 << field.bits), name=f"{field.name}_low")
            high = Signal(shape, init=(1 << field.bits) - 1, name=f"{field.name}_high")
            with m.If(self.configure & (self.control.index == index)):
                with m.If(self.control.op == Control.BOUND_LOW):
                    m.d.sync += low.eq(self.control.value)
                with m.If(self.control.op == Control.BOUND_HIGH):
                    m.d.sync += high.eq(self.control.value)

            key = self.key[field.name]
            first = key + low if self.probe_side else key - high
            final = key + high if self.probe_side else key - low
            least = -(1 << field.bits - 1) if field.signed else 0
            most = least + (1 << field.bits) - 1
            beyond = (first > most) | (final < least)
            sign = -least  # adding it to a field's value makes the least one zero
            m.d.comb += [
                self.criterion[field.name].low.eq(
                    Mux(beyond, most, Mux(first < least, least, first)) ^ sign
                ),
                self.criterion[field.name].high.eq(
                    Mux(beyond, least, Mux(final > most, most, final)) ^ sign
                ),
                self.stored[field.name].eq(key ^ sign),
            ]
        return m


class Comparator(wiring.Component):
    """Does a stored key match a resident probe?

    Latency: 0 cycles. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    criterion : In
    key : In
    match : Out(1)
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = 0
        super().__init__(
            {
                "criterion": In(criterion_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "match": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.comparator == "band":
            names = [field.name for field in self.parameters.keys]
            within = [
                (self.criterion[name].low <= self.key[name])
                & (self.key[name] <= self.criterion[name].high)
                for name in names
            ]
            m.d.comb += self.match.eq(Cat(within).all())
        elif self.parameters.comparator == "equality":
            m.d.comb += self.match.eq(Value.cast(self.criterion) == Value.cast(self.key))
        else:
            predicate = load_predicate(self.parameters.predicate)
            r, s = self.criterion, self.key
            if self.probe_side:
                r, s = s, r
            m.d.comb += self.match.eq(predicate(r, s))
        return m
