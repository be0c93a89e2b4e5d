# SPDX-License-Identifier: Apache-2.0
"""The register file of a table: registers behind a :class:`hdl.registers.bus.RegisterBus`."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .bus import ADDRESS_BITS, DATA_BITS, RegisterBus

__all__ = ["RegisterFile", "port_name"]

#: How the hardware sees a field that is not constant: it drives ``ro`` fields, sets the bits of
#: ``w1c`` fields, and reads all others.
FLOWS = {"ro": In, "w1c": In, "rw": Out, "wo": Out}


def port_name(register, field):
    """Return the name of the port of a field: ``control_reset`` of the field RESET of CONTROL."""
    return f"{register.name}_{field.name}".lower()


class RegisterFile(wiring.Component):
    """Registers of a table, for one access at a time.

    A read sees all fields as they are in the first cycle of its request, and a write acts in the
    next one. Only bytes whose strobe is set are written. A register of the table that is ``stored``
    is read from a memory beside the file, which may let the access wait.

    Latency: ``done`` comes 1 cycle after the request, later only for a stored register. Throughput:
    one access per 2 cycles.

    Parameters
    ----------
    table : RegisterTable

    Members
    -------
    bus : In(RegisterBus())
    {register}_{field} : In or Out
        A port for every field that is neither constant nor stored. ``ro``: the value to be read.
        ``w1c``: bits to be set; they win over bits that are cleared in the same cycle. ``rw``: the
        value. ``wo``: the bits that are written as one, for one cycle.
    {register}_held : Out
        Value of all ``w1c`` fields of a register, one after the other.
    stored_address : Out(12)
        Byte address of the stored register that is read.
    stored_ready : In(1)
        The memory may be read. Until then, an access to a stored register waits.
    stored_data : In(32)
        Value of the register whose address was at ``stored_address`` in the cycle before.
    """

    def __init__(self, table):
        self.table = table
        self.latency = 1
        ports = {}
        for register in table.registers:
            for field in register.fields:
                if not (register.stored or (field.access == "ro" and field.reset is not None)):
                    ports[port_name(register, field)] = FLOWS[field.access](field.bits)
            if bits := sum(field.bits for field in register.fields if field.access == "w1c"):
                ports[f"{register.name}_held".lower()] = Out(bits)
        if any(register.stored for register in table.registers):
            ports |= {
                "stored_address": Out(ADDRESS_BITS),
                "stored_ready": In(1),
                "stored_data": In(DATA_BITS),
            }
        super().__init__({"bus": In(RegisterBus()), **ports})

    def elaborate(self, platform):
        m = Module()
        bus, registers = self.bus, self.table.registers
        done, refused, from_memory = Signal(), Signal(), Signal()
        value = Signal(DATA_BITS)
        chosen = Signal(len(registers))
        stored = Signal()
        m.d.comb += [
            *(
                choice.eq(bus.address[2:] == register.address // 4)
                for choice, register in zip(chosen, registers, strict=True)
            ),
            stored.eq(any_of(chosen, registers, lambda register: register.stored)),
        ]
        ready = C(1)
        if hasattr(self, "stored_ready"):
            m.d.comb += self.stored_address.eq(bus.address)
            ready = ~stored | self.stored_ready
        start = Signal()
        m.d.comb += start.eq((bus.read | bus.write) & ~done & ready)
        writable = any_of(chosen, registers, lambda register: register.is_writable)
        m.d.sync += [
            done.eq(start),
            refused.eq(Mux(bus.write, ~writable, ~chosen.any())),
            from_memory.eq(stored),
        ]
        changed = Signal(DATA_BITS)  # the bits that a write may change
        m.d.comb += changed.eq(Cat(bit.replicate(8) for bit in bus.strobe))
        m.d.sync += value.eq(0)
        for choice, register in zip(chosen, registers, strict=True):
            if not register.stored:
                shown = self.elaborate_register(m, register, start & bus.write & choice, changed)
                with m.If(start & choice):
                    m.d.sync += value.eq(shown)
        m.d.comb += [bus.done.eq(done), bus.refused.eq(refused), bus.answer.eq(value)]
        if hasattr(self, "stored_data"):
            with m.If(from_memory):
                m.d.comb += bus.answer.eq(self.stored_data)
        return m

    def elaborate_register(self, m, register, write, changed):
        """Add the fields of a register; return the value that a read shows."""
        shown, held = Signal(DATA_BITS, name=f"{register.name}_shown".lower()), []
        for field in register.fields:
            place = slice(field.offset, field.offset + field.bits)
            ones = self.bus.data[place] & changed[place] & write.replicate(field.bits)
            port = getattr(self, port_name(register, field), None)
            if port is None:
                m.d.comb += shown[place].eq(field.reset)
                continue
            if field.access == "ro":
                m.d.comb += shown[place].eq(port)
                continue
            name = f"{port_name(register, field)}_value"
            kept = Signal(field.bits, init=field.reset, name=name)
            if field.access == "wo":
                m.d.sync += kept.eq(ones)
            elif field.access == "rw":
                mask = changed[place] & write.replicate(field.bits)
                m.d.sync += kept.eq((kept & ~mask) | ones)
            else:
                m.d.sync += kept.eq((kept & ~ones) | port)
                held.append(kept)
            if field.access != "wo":
                m.d.comb += shown[place].eq(kept)
            if field.access != "w1c":
                m.d.comb += port.eq(kept)
        if held:
            m.d.comb += getattr(self, f"{register.name}_held".lower()).eq(Cat(held))
        return shown


def any_of(chosen, registers, holds):
    """Return whether a register for which ``holds`` is chosen."""
    return Cat(
        choice for choice, register in zip(chosen, registers, strict=True) if holds(register)
    ).any()
