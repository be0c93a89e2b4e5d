# SPDX-License-Identifier: Apache-2.0
"""The register file of a shell, and snapshots of counters."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.counters import COUNTER_BITS, COUNTER_LATENCY
from hdl.families.choice import family_of

from .bus import ADDRESS_BITS, DATA_BITS, RegisterBus
from .table import COUNTERS_ADDRESS

__all__ = ["CounterSnapshot", "RegisterFile", "port_name"]


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


class CounterSnapshot(wiring.Component):
    """Copy the counters of an accelerator one after the other, and let both halves be read.

    A counter takes 48 bits and a register 32, so two reads of a counter that counts would not fit
    together. Copies do. They are made one after the other, so the n-th counter is copied n cycles
    later than the first one. ``ready`` is low from ``start`` on until all have been copied, and
    nothing is read then. The first copies are made when the reset of the accelerator ends.

    Latency: :attr:`latency` cycles from ``start`` to ``ready``; 1 cycle from ``address`` to
    ``data``. Throughput: 1 register per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    start : In(1)
        Make new copies. Ignored while copies are made.
    resetting : In(1)
        The accelerator is being reset. Copies are made when it no longer is.
    ready : Out(1)
        The copies can be read.
    address : In(12)
        Byte address of the half that is read (:data:`COUNTERS_ADDRESS`).
    data : Out(32)
        The half whose address was there in the cycle before.
    counter_addr : Out
        Address of the counter that is copied.
    counter_data : In(48)
        Value of the counter whose address was there two cycles before.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        family = family_of(parameters)
        self.depth = 1 << family.counter_address_bits
        self._last = family.counters[-1].address
        self.latency = self._last + 1 + COUNTER_LATENCY + 1
        super().__init__(
            {
                "start": In(1),
                "resetting": In(1),
                "ready": Out(1),
                "address": In(ADDRESS_BITS),
                "data": Out(DATA_BITS),
                "counter_addr": Out(family.counter_address_bits),
                "counter_data": In(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.copies = copies = Memory(shape=COUNTER_BITS, depth=self.depth, init=[])
        written, read = copies.write_port(), copies.read_port()
        # Counts through the counters, and the cycles until the last one has come.
        step = Signal(range(self.latency + 1))
        running = Signal(init=1)
        with m.If(self.resetting):
            m.d.sync += [running.eq(1), step.eq(0)]
        with m.Elif(running):
            m.d.sync += [step.eq(step + 1), running.eq(step != self.latency - 2)]
        with m.Else():
            m.d.sync += [running.eq(self.start), step.eq(0)]
        m.d.comb += [
            self.ready.eq(~running & ~self.resetting & ~self.start),
            self.counter_addr.eq(step),
            written.addr.eq(step - COUNTER_LATENCY),
            written.en.eq(running & (step >= COUNTER_LATENCY)),
            written.data.eq(self.counter_data),
        ]
        index = (self.address - COUNTERS_ADDRESS)[2:]
        upper = Signal()
        m.d.sync += upper.eq(index[0])
        m.d.comb += read.addr.eq(index[1:])
        halves = Cat(read.data, Const(0, 2 * DATA_BITS - COUNTER_BITS))
        m.d.comb += self.data.eq(halves.word_select(upper, DATA_BITS))
        return m
