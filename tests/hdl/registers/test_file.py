# SPDX-License-Identifier: Apache-2.0
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.registers.file import RegisterFile, port_name
from hdl.registers.table import Field, Register, RegisterTable
from tests.hdl.registers.bus_driver import access


def field(name, offset, bits, access, reset=None):
    return Field(name=name, offset=offset, bits=bits, access=access, description=".", reset=reset)


TABLE = RegisterTable(
    "t",
    (
        Register(
            name="ID", address=0, description=".", fields=(field("X", 4, 12, "ro", 0xABC),)
        ),
        Register(
            name="ALL", address=8, description=".",
            fields=(
                field("HERE", 0, 3, "ro"),
                field("FIXED", 3, 3, "ro", 5),
                field("KEPT", 6, 9, "rw", 0x155),
                field("SEEN", 15, 4, "w1c"),
                field("MORE", 19, 2, "w1c"),
                field("ACT", 28, 4, "wo"),
            ),
        ),
        Register(
            name="COPY", address=0x104, description=".", stored=True,
            fields=(field("VALUE", 0, 32, "ro"),),
        ),
    ),
)  # fmt: skip
ALL = TABLE["ALL"]
ADDRESSES = [0, 4, 8, 12, 0x100, 0x104, 0xFFC]


def simulate(process):
    dut = RegisterFile(TABLE)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        await process(ctx, dut)

    simulator.add_testbench(bench)
    simulator.run()


class Model:
    """What the registers hold, in plain integers."""

    def __init__(self):
        self.values = {one.name: one.reset for one in ALL.fields if one.access in ("rw", "w1c")}

    def read(self, address, here):
        if address == 0:
            return 0xABC0
        if address != 8:
            return 0
        shown = {"HERE": here, "FIXED": 5, "ACT": 0} | self.values
        return sum(shown[one.name] << one.offset for one in ALL.fields)

    def write(self, data, strobe):
        mask = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
        acts = {}
        for one in ALL.fields:
            ones, changed = ((v & one.mask) >> one.offset for v in (data & mask, mask))
            if one.access == "rw":
                self.values[one.name] = self.values[one.name] & ~changed | ones
            elif one.access == "w1c":
                self.values[one.name] &= ~ones
            elif one.access == "wo":
                acts[one.name] = ones
        return acts


writes = st.tuples(st.sampled_from(ADDRESSES), st.integers(0, 2**32 - 1), st.integers(0, 15))
steps = st.one_of(
    st.tuples(st.just("read"), st.sampled_from(ADDRESSES), st.integers(0, 7)),
    st.tuples(st.just("write"), writes),
    st.tuples(st.just("set"), st.integers(0, 15), st.integers(0, 3)),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, min_size=3, max_size=25))
def test_registers_hold_what_the_model_holds(program):
    async def process(ctx, dut):
        model = Model()
        ctx.set(dut.stored_ready, 1)
        for what, *rest in program:
            if what == "read":
                address, here = rest
                ctx.set(dut.all_here, here)
                answer, refused, cycles = await access(ctx, dut.bus, address)
                assert cycles == dut.latency
                assert refused == (address not in (0, 8, 0x104))
                assert address == 0x104 or answer == model.read(address, here)
            elif what == "write":
                ((address, data, strobe),) = rest
                ctx.set(dut.bus.address, address)
                _, refused, _ = await access(ctx, dut.bus, address, data, strobe=strobe)
                assert refused == (address != 8)
                if address == 8:
                    model.write(data, strobe)
            else:
                seen, more = rest
                ctx.set(dut.all_seen, seen)
                ctx.set(dut.all_more, more)
                await ctx.tick()
                ctx.set(dut.all_seen, 0)
                ctx.set(dut.all_more, 0)
                model.values["SEEN"] |= seen
                model.values["MORE"] |= more
            assert ctx.get(dut.all_kept) == model.values["KEPT"]
            assert ctx.get(dut.all_held) == model.values["SEEN"] | model.values["MORE"] << 4

    simulate(process)


def test_a_command_lasts_one_cycle():
    async def process(ctx, dut):
        ctx.set(dut.bus.address, 8)
        ctx.set(dut.bus.data, 0xA000_0000)
        ctx.set(dut.bus.strobe, 8)
        ctx.set(dut.bus.write, 1)
        seen = []
        for _ in range(2):
            await ctx.tick()
            seen.append((ctx.get(dut.bus.done), ctx.get(dut.all_act)))
        assert seen == [(1, 0xA), (0, 0)]  # `done` came; the request stands, and is another one
        ctx.set(dut.bus.write, 0)
        await ctx.tick()
        assert (ctx.get(dut.bus.done), ctx.get(dut.all_act)) == (0, 0)

    simulate(process)


def test_a_bit_that_is_set_while_it_is_cleared_stays():
    async def process(ctx, dut):
        ctx.set(dut.all_seen, 2)
        await ctx.tick()
        await access(ctx, dut.bus, 8, 0xFFFF_FFFF)  # `all_seen` is still there
        assert ctx.get(dut.all_held) == 2
        ctx.set(dut.all_seen, 0)
        await access(ctx, dut.bus, 8, 1 << 16)
        assert ctx.get(dut.all_held) == 0

    simulate(process)


def test_a_stored_register_waits_for_its_memory():
    async def process(ctx, dut):
        ctx.set(dut.bus.address, 0x104)
        ctx.set(dut.bus.read, 1)
        await ctx.tick().repeat(7)
        assert not ctx.get(dut.bus.done)
        assert ctx.get(dut.stored_address) == 0x104
        ctx.set(dut.stored_ready, 1)
        await ctx.tick()
        ctx.set(dut.stored_data, 0x12345678)  # one cycle after its address
        assert ctx.get(dut.bus.done)
        assert ctx.get(dut.bus.answer) == 0x12345678
        ctx.set(dut.bus.read, 0)
        ctx.set(dut.stored_ready, 0)
        await ctx.tick()
        answer, refused, cycles = await access(ctx, dut.bus, 0)  # nobody else waits
        assert (answer, refused, cycles) == (0xABC0, False, dut.latency)

    simulate(process)


def test_only_fields_that_the_hardware_knows_have_ports():
    members = RegisterFile(TABLE).signature.members
    assert port_name(ALL, ALL.fields[2]) in members
    assert not any("fixed" in name or "copy" in name for name in members)
    assert (members["all_kept"].flow, members["all_here"].flow) == (Out, In)
