# SPDX-License-Identifier: Apache-2.0
"""What passes between clocks: what a netlist has there, and what resets and long wires do to it."""

from dataclasses import dataclass
import json
from random import Random
from typing import NamedTuple

from amaranth.hdl import Cat, ClockDomain, Module, Mux, Signal
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from hdl.crossings import inspect_crossings
from hdl.presets import PRESETS
from hdl.registers.file import RegisterFile
from hdl.registers.table import Field, Register, RegisterTable
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.shells.bus_crossing import BusCrossing
from hdl.shells.linked_accelerator import EthernetShell
from hdl.shells.uart_shell import LEAST_DIVISOR, UartShell
from hdl.verilog.conversion import to_netlist

from .registry import Result, figure

__all__ = ["ADDRESSES", "MISSING", "PERIODS", "Access", "CrossingRun", "Reset", "random_resets"]

#: Periods of `bus` and of `sync` in nanoseconds; no edges of the two stay together.
PERIODS = ((10.0, 10.003), (10.0, 3.07), (3.07, 10.0), (40.0, 9.97), (7.01, 6.0))
#: Byte addresses of four registers that keep what is written, and of a constant. The last one is
#: that of no register.
ADDRESSES = (0, 4, 8, 12, 16)
MISSING = 64
#: Value of the constant, and of each other register after reset.
CONSTANT, AFTER_RESET = 0xDEADBEEF, (0x01234567, 0x89ABCDEF, 0xFEDCBA98, 0x76543210)
#: Cycles of the slower clock within which an access is answered that no reset delays.
DEADLINE = 16
#: Random resets of the figure.
RESETS = 100_000


def table():
    """Return the registers behind the crossing."""
    kept = (
        Register(
            name=f"R{n}", address=address, description=".",
            fields=(Field(name="KEPT", offset=0, bits=32, access="rw", description=".",
                          reset=AFTER_RESET[n]),),
        )
        for n, address in enumerate(ADDRESSES[:4])
    )  # fmt: skip
    constant = Field(name="VALUE", offset=0, bits=32, description=".", reset=CONSTANT)
    return RegisterTable(
        "t", (*kept, Register(name="C", address=16, description=".", fields=(constant,)))
    )


class LateCrossing(BusCrossing):
    """A crossing between whose sides every wire has a length of its own.

    A bit that has changed at the last edge of its clock may not yet have arrived when the other
    side looks for the first time. Which bits these are is anything: so are bits of a bus apart, and
    a flip-flop that was between zero and one becomes either. This is what a bound of a period of
    the faster clock allows.

    Attributes
    ----------
    late : dict of str to Signal
        For the domain that looks, a bit for each wire: it is late, if it can be.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self.late = {"bus": Signal(64), "sync": Signal(64)}
        self._used = {"bus": 0, "sync": 0}

    def elaborate_bus(self, m, asking, answered, request, response):
        """See :meth:`BusCrossing.elaborate_bus`."""
        answered, response = self.lengthen(m, answered, response, "sync", "bus")
        super().elaborate_bus(m, asking, answered, request, response)

    def elaborate_sync(self, m, asking, answered, request, response):
        """See :meth:`BusCrossing.elaborate_sync`."""
        asking, request = self.lengthen(m, asking, request, "bus", "sync")
        super().elaborate_sync(m, asking, answered, request, response)

    def lengthen(self, m, level, values, source, target):
        """Return a level and values of one domain as the other one sees them."""
        edges, looked = (Signal(16, reset_less=True, name=f"{source}_{n}") for n in "el")
        m.d[source] += edges.eq(edges + 1)
        m.d[target] += looked.eq(edges)

        def seen(value):
            before = Signal(len(value), reset_less=True, name=f"{value.name}_before")
            m.d[source] += before.eq(value)
            begin = self._used[target]
            self._used[target] += len(value)
            late = self.late[target][begin : begin + len(value)]
            return Cat(
                Mux(bit & (edges != looked), old, new)
                for bit, old, new in zip(late, before, value, strict=True)
            )

        return seen(level), {name: seen(value) for name, value in values.items()}


class Access(NamedTuple):
    """A read, or a write of ``data`` to the bytes of ``strobe``.

    Those of a read mean nothing. All the same they pass the crossing, and no other access has them.
    """

    address: int
    write: bool
    data: int
    strobe: int = 15

    @property
    def refused(self):
        """Whether there is no such register, or it cannot be written."""
        return self.address not in ADDRESSES[: 4 if self.write else 5]

    def written(self, before):
        """Return what a register holds after it."""
        mask = sum(0xFF << 8 * n for n in range(4) if self.strobe >> n & 1)
        return before & ~mask | self.data & mask


class Reset(NamedTuple):
    """Reset of a domain: so many cycles after ``access`` has begun, and so many cycles long."""

    access: Access
    domains: tuple[str, ...]
    wait: int
    cycles: int


@dataclass
class Asked:
    """An access under way: what it was answered by the registers, and whether it was given up."""

    access: Access
    served: tuple[int, int] | None = None
    dropped: bool = False


def random_access(random):
    """Return any access, with data that no other one has."""
    return Access(
        random.choice((*ADDRESSES, MISSING)), bool(random.getrandbits(1)), random.getrandbits(32),
        random.choice((15, 15, random.getrandbits(4))),
    )  # fmt: skip


def random_resets(random, count, *, most_wait=24, most_cycles=6):
    """Yield resets of either side, or of both, at any time of any access."""
    for _ in range(count):
        domains = random.choice((("bus",), ("sync",), ("bus", "sync")))
        yield Reset(
            random_access(random), domains, random.randrange(most_wait),
            random.randrange(1, most_cycles + 1),
        )  # fmt: skip


class CrossingRun:
    """A master that reads and writes registers of another clock, while resets come.

    Registers are checked against a plain model at every edge of their clock: each access is served
    once and as it was asked, in the order in which accesses were asked; only one that a reset of
    ``bus`` has met may be left out. Each answer is that of the registers, and no access waits
    for ever.

    Parameters
    ----------
    resets : iterable of Reset
    bus, sync : float
        Periods of both clocks in nanoseconds.
    crossing : BusCrossing
    seed : int
        Of the accesses between resets, and of the wires.

    Attributes
    ----------
    faults : list of str
        What was torn, lost, repeated or wrong.
    counts : dict of str to int
        ``resets``; ``asked``, ``served`` and ``dropped`` accesses.
    """

    def __init__(self, resets, *, bus, sync, crossing=None, seed=0):
        self.dut = LateCrossing() if crossing is None else crossing
        self.file = RegisterFile(table())
        self.random = Random(seed)
        self.resets, self.periods = resets, {"bus": bus, "sync": sync}
        self.faults, self.counts = [], dict.fromkeys(("resets", "asked", "served", "dropped"), 0)
        self.domains = {name: ClockDomain(name) for name in self.periods}
        self.answers, self.serves = Signal(35), Signal(84)
        self.waiting = []  # accesses that the registers have not seen
        self.wanted = None  # the access that the next reset meets
        self.current = None
        self.ended, self.off = False, False  # all resets have been; `sync` is in reset
        self.held = list(AFTER_RESET)

    def run(self):
        """Run until all resets have been, and return :attr:`faults`."""
        m = Module()
        m.domains += self.domains.values()
        m.submodules.dut, m.submodules.file = self.dut, self.file
        connect(m, self.dut.o, self.file.bus)
        # One number each is quicker to look at than its parts.
        bus, file = self.dut.i, self.dut.o
        m.d.comb += [
            self.answers.eq(Cat(bus.done, bus.refused, self.domains["bus"].rst, bus.answer)),
            self.serves.eq(
                Cat(
                    file.done & (file.read | file.write),
                    self.domains["sync"].rst,
                    file.write,
                    file.refused,
                    file.strobe,
                    file.address,
                    file.data,
                    file.answer,
                )
            ),
        ]
        simulator = Simulator(m)
        for name, period in self.periods.items():
            simulator.add_clock(period * 1e-9, domain=name)
        simulator.add_testbench(self.master)
        simulator.add_testbench(self.registers, background=True)
        simulator.add_testbench(self.resetter)
        simulator.run()
        return self.faults

    async def master(self, ctx):
        """Ask for one access after the other."""
        bus, late = self.dut.i, self.dut.late["bus"]
        slower = max(self.periods.values()) / self.periods["bus"]
        tick = ctx.tick("bus").sample(self.answers)
        while not (self.ended and self.current is None):
            access, self.wanted = self.wanted or random_access(self.random), None
            self.current = asked = Asked(access)
            self.waiting.append(asked)
            self.counts["asked"] += 1
            ctx.set(bus.address, access.address)
            ctx.set(bus.data, access.data)
            ctx.set(bus.strobe, access.strobe)
            ctx.set(bus.write if access.write else bus.read, 1)
            waited = 0
            while True:
                *_, seen = await tick
                done, refused, off, answer = seen & 1, seen >> 1 & 1, seen >> 2 & 1, seen >> 3
                ctx.set(late, self.random.getrandbits(64))
                if off or done:
                    break
                waited = 0 if self.off else waited + 1
                if waited > 2 * DEADLINE * slower:
                    self.faults.append(f"{access} gets no answer")
                    break
            ctx.set(bus.read, 0)
            ctx.set(bus.write, 0)
            self.current = None
            if off:
                asked.dropped = True
                self.counts["dropped"] += 1
                while off:
                    *_, seen = await tick
                    off = seen >> 2 & 1
            else:
                self.check(asked, answer, refused)
            for _ in range(self.random.choice((0, 0, 1, 3))):
                *_, seen = await tick
                if seen & 1:
                    self.faults.append(f"an answer comes that nobody waits for, after {access}")

    def check(self, asked, answer, refused):
        """Check the answer of an access."""
        access, served = asked.access, asked.served
        if served is None:
            self.faults.append(f"{access} is answered, and has not happened")
        elif refused != access.refused or served[1] != access.refused:
            self.faults.append(f"{access}: refused is {refused}")
        elif not access.write and not refused and answer != served[0]:
            self.faults.append(f"{access} gets {answer:#x}, not {served[0]:#x}")

    async def registers(self, ctx):
        """Watch what happens to the registers."""
        late = self.dut.late["sync"]
        ports = [getattr(self.file, f"r{n}_kept") for n in range(4)]
        tick = ctx.tick("sync").sample(self.serves)
        while True:
            *_, seen = await tick
            ctx.set(late, self.random.getrandbits(64))
            if seen & 1:
                found = Access(
                    seen >> 8 & 0xFFF, bool(seen & 4), seen >> 20 & 0xFFFFFFFF, seen >> 4 & 15
                )
                self.serve(found, seen >> 52, seen >> 3 & 1)
                held = [ctx.get(port) for port in ports]
            if seen & 2:
                self.held = list(AFTER_RESET)
            if seen & 1 and held != self.held:
                self.faults.append(f"the registers hold {held}, not {self.held}")

    def serve(self, found, answer, refused):
        """Check an access that the registers have answered, and do it in the model."""
        self.counts["served"] += 1
        while self.waiting:
            asked = self.waiting.pop(0)
            access = asked.access
            if found == access:
                break
            if not asked.dropped:
                self.faults.append(f"{access} is seen as {found}")
                return
        else:
            self.faults.append(f"nobody has asked for {found}")
            return
        asked.served = (answer, refused)
        place = access.address // 4
        if access.refused:
            return
        if access.write:
            self.held[place] = access.written(self.held[place])
        else:
            expected = (*self.held, CONSTANT)[place]
            if answer != expected:
                self.faults.append(f"{access} is answered with {answer:#x}, not {expected:#x}")

    async def resetter(self, ctx):
        """Reset what is to be reset, each time that its access has begun."""
        ticks = {name: ctx.tick(name) for name in self.domains}
        for access, domains, wait, cycles in self.resets:
            self.wanted = access
            while self.wanted is not None:
                await ticks["bus"]
            (first, *_) = domains
            for _ in range(wait):
                await ticks[first]
            self.off = "sync" in domains
            for name in domains:
                ctx.set(self.domains[name].rst, 1)
            for name in domains:
                for _ in range(cycles):
                    await ticks[name]
                ctx.set(self.domains[name].rst, 0)
            self.off = False
            self.counts["resets"] += 1
        self.ended = True


@figure("crossing.torn_or_lost", unit="accesses", goal="<= 0")
def torn_or_lost(report):
    """Register accesses across two clocks that 100,000 random resets have torn, lost or falsified.

    In Amaranth's simulator, the crossing in front of a register file: random reads and writes of
    registers that exist and that do not, five ratios of the clocks, resets of either side or both
    at any time of an access. Every wire between the clocks is late by chance, each bit for itself.
    Every access is checked against a plain model: it happens once, whole, in its register and in
    its turn, and its answer is the right one; only one that a reset of its own side has met may be
    left out.
    """
    faults, counts = [], {}
    for n, (bus, sync) in enumerate(PERIODS):
        random = Random(f"crossing {n}")
        resets = random_resets(random, RESETS // len(PERIODS))
        run = CrossingRun(resets, bus=bus, sync=sync, seed=n)
        faults += run.run()
        counts = {name: counts.get(name, 0) + count for name, count in run.counts.items()}
        report(f"bus {bus} ns, sync {sync} ns: {run.counts}, {len(faults)} faults")
    notes = (", ".join(f"{count} {name}" for name, count in counts.items()), *faults[:5])
    return Result(len(faults), notes=notes, details=counts)


def inspected_shells():
    """Yield the name and a :class:`hdl.crossings.Inspection` of each shell with several clocks.

    A UART has one clock, and a line that belongs to none.
    """
    parameters, digest = PRESETS["tiny"], "00" * 32
    axi = AxiOptions(bus_clock="separate", inputs=2)
    for shell in (
        AxiShell(parameters, digest=digest, options=axi, is_whole=True),
        EthernetShell(parameters, digest=digest),
        UartShell(parameters, digest=digest, divisor=LEAST_DIVISOR),
    ):
        netlist = json.loads(to_netlist(shell, name="top")[1])["modules"]
        name = type(shell).__name__
        yield name, inspect_crossings(shell, netlist, name="top", clock_of=shell.clock_of)


@figure("cdc.unlisted_crossings", unit="paths", goal="<= 0")
def unlisted_crossings(report):
    """Paths between clocks that no component declares, in the netlists of all shells.

    Of the AXI shell with a clock for its registers, of the Ethernet shell, and of the UART shell
    with its line: whatever a flip-flop, a memory or a pin reads of another clock. Declared paths
    count as well if they are not built as their kind asks for.
    """
    faults, notes = [], []
    for name, found in inspected_shells():
        faults += [*found.unlisted, *found.faults]
        notes.append(f"{name}: {len(found.listed)} crossings of {', '.join(found.clocks)}")
        report(notes[-1])
    return Result(len(faults), notes=(*notes, *faults[:5]))
