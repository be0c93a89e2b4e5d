# SPDX-License-Identifier: Apache-2.0
"""Proofs about the AXI shell: the slave of its registers, its streams, its reset."""

from types import SimpleNamespace

from amaranth import *
from amaranth.lib import data

from hdl.registers.file import RegisterFile
from hdl.registers.table import Field, Register, RegisterTable
from hdl.shells.axi_streams import (
    SLVERR,
    AxiLiteSlave,
    AxiStreamInput,
    AxiStreamOutput,
    PacketEnds,
)
from hdl.shells.bus_crossing import ResetStretch
from hdl.words.results import ResultKind

from .proof import proof
from .stream_rules import answers_within, keeps_order, offer, take

__all__ = []

#: Cycles within which the register file of the proof answers.
SLOWEST = 3


def channel(interface, prefix, *names):
    """Return an AXI channel as a stream: ``payload``, ``valid`` and ``ready``."""
    return SimpleNamespace(
        payload=Cat(getattr(interface, f"{prefix}{name}") for name in names),
        valid=getattr(interface, f"{prefix}valid"),
        ready=getattr(interface, f"{prefix}ready"),
    )


@proof(
    "axi-lite",
    says="every request is done once, in time, and answered with what registers say",
    component=f"AxiLiteSlave, registers that take up to {SLOWEST} cycles",
    depth=13,
    mutate=(AxiLiteSlave,),
    spared={"ADDRESS_BITS - 2 -> ADDRESS_BITS + 2": "more bits of an address are zeros"},
)
def axi_lite(bench):
    """A slave in front of registers that answer within :data:`SLOWEST` cycles."""
    dut = bench.add(AxiLiteSlave())
    axi, bus = dut.axi, dut.bus
    requests = {name: channel(axi, name, *parts) for name, parts in REQUESTS.items()}
    puts = {name: offer(bench, stream) for name, stream in requests.items()}
    responses = {name: channel(axi, name, *parts) for name, parts in RESPONSES.items()}
    gots = {name: take(bench, stream, name) for name, stream in responses.items()}

    asked = bench.wire(bus.read | bus.write)
    done = bench.any(1, "done")
    waited = bench.register(range(SLOWEST), "waited")
    bench.next(waited.eq(Mux(asked & ~done, waited + 1, 0)))
    bench.assume(~done | asked)
    bench.assume(done | ~asked | (waited < SLOWEST - 1))
    bench.set(bus.done, done)
    bench.set(bus.refused, bench.any(1, "refused"))
    bench.set(bus.answer, bench.any(32, "answer"))
    written = Cat(bus.data, bus.strobe) & bus.write.replicate(36)
    request = Cat(bus.read, bus.write, bus.address, written)
    bench.claim("a register is never read and written at once", ~(bus.read & bus.write))
    bench.claim(
        "an access stays as it is until it is done",
        ~bench.past(asked & ~done) | (request == bench.past(request)),
    )
    bench.claim("an access is to whole registers", bus.address[:2] == 0)

    wrote, has_read = bench.wire(bus.write & done), bench.wire(bus.read & done)
    place = bus.address[2:]
    queues = {
        "AW": ("write addresses", puts["aw"], axi.awaddr[2:], wrote, place),
        "W": ("written values", puts["w"], Cat(axi.wdata, axi.wstrb), wrote,
              Cat(bus.data, bus.strobe)),
        "B": ("responses", wrote, bus.refused, gots["b"], axi.bresp == SLVERR),
        "AR": ("read addresses", puts["ar"], axi.araddr[2:], has_read, place),
        "R": ("read values", has_read, Cat(bus.answer, bus.refused), gots["r"],
              Cat(axi.rdata, axi.rresp == SLVERR)),
    }  # fmt: skip
    levels = {
        name: keeps_order(bench, words, put, value, got, seen, most=1).level
        for name, (words, put, value, got, seen) in queues.items()
    }
    for prefix in "br":
        response = getattr(axi, f"{prefix}resp")
        bench.claim(f"{prefix}resp is OKAY or SLVERR", (response == 0) | (response == SLVERR))
    write_waits = (levels["AW"] > 0) & (levels["W"] > 0) & (levels["B"] == 0)
    read_waits = (levels["AR"] > 0) & (levels["R"] == 0)
    # Another access first, which takes its cycle to begin and one to end; then likewise.
    most = 2 * SLOWEST + 3
    answers_within(bench, "a complete write is done in time", write_waits, most)
    answers_within(bench, "a read is done in time", read_waits, most)
    for name, stream in responses.items():
        bench.claim(f"{name} answers what was done at once", stream.valid == levels[name.upper()])
    for name, stream in requests.items():
        bench.claim(
            f"{name} takes a request while none waits", stream.ready == (levels[name.upper()] == 0)
        )
    bench.cover("a read and a write wait together", write_waits & read_waits)


REQUESTS = {"aw": ("addr", "prot"), "w": ("data", "strb"), "ar": ("addr", "prot")}
RESPONSES = {"b": ("resp",), "r": ("data", "resp")}
STREAM = ("data", "keep", "last")


@proof(
    "axi-input",
    says="whole words come out as they went in, torn words are dropped and told",
    component="AxiStreamInput, 11 bits",
    depth=10,
    mutate=(AxiStreamInput,),
)
def axi_input(bench):
    """Words of 11 bits in two bytes; the input is opened and closed at any time."""
    dut = bench.add(AxiStreamInput(data.StructLayout({"word": 11})))
    stream = channel(dut.axis, "t", *STREAM)
    put = offer(bench, stream)
    opened = bench.any(1, "open")
    bench.set(dut.open, opened)
    got = take(bench, dut.o, "output")
    whole = dut.axis.tkeep.all()
    keeps_order(bench, "input", put & whole, dut.axis.tdata[:11], got, dut.o.payload, most=2)
    # A torn word counts as given when `dropped` tells of it.
    torn = bench.register(range(4), "torn")
    bench.next(torn.eq(torn + (put & ~whole) - dut.dropped))
    bench.claim("a torn word is told once", (torn <= 2) & (~dut.dropped | (torn != 0)))
    bench.claim("nothing is taken while the input is closed", opened | ~stream.ready)
    inside = bench.register(range(4), "inside")
    bench.next(inside.eq(inside + put - got - dut.dropped))
    bench.claim("a word is taken while there is room", ~opened | (stream.ready == (inside < 2)))
    bench.claim(
        "what is inside comes out or is dropped", (inside != 0) == (dut.o.valid | dut.dropped)
    )
    between = bench.past(bench.wire(dut.dropped & bench.past(got)))
    bench.cover("a torn word stands between two others", got & between)


@proof(
    "axi-output",
    says="words leave as they came, by the rules of AXI, and marks end packets",
    component="AxiStreamOutput, 11 bits",
    depth=10,
    mutate=(AxiStreamOutput,),
)
def axi_output(bench):
    """Words of 11 bits in two bytes; the output is closed at any time."""
    dut = bench.add(AxiStreamOutput(data.StructLayout({"kind": ResultKind, "rest": 9})))
    put = offer(bench, dut.i)
    closed = bench.any(1, "closed")
    bench.set(dut.closed, closed)
    stream = channel(dut.axis, "t", *STREAM)
    got = take(bench, stream, "m_axis")
    queue = keeps_order(bench, "output", put, dut.i.payload, got, dut.axis.tdata[:11], most=2)
    is_mark = dut.axis.tdata[:2] == ResultKind.MARK.value
    bench.claim("tlast is set on marks", ~stream.valid | (dut.axis.tlast == is_mark))
    bench.claim("bits above a word are zero", dut.axis.tdata[11:] == 0)
    bench.claim("tkeep is all ones", dut.axis.tkeep.all())
    bench.claim("nothing is taken while the output is closed", ~closed | ~dut.i.ready)
    bench.claim("a word is taken while there is room", closed | (dut.i.ready == (queue.level < 2)))
    bench.claim("a word is offered whenever there is one", stream.valid == (queue.level > 0))
    bench.cover("a mark leaves behind another word", got & dut.axis.tlast & bench.past(got))


@proof(
    "packet-ends",
    says="a packet of results ends with its last word, a mark or silence, and nowhere else",
    component="PacketEnds, packets of 4 words",
    depth=12,
    mutate=(PacketEnds,),
)
def packet_ends(bench):
    """Words of four bits in packets of four."""
    dut = bench.add(PacketEnds(data.StructLayout({"word": 4}), packet=4))
    put = offer(bench, dut.i)
    ready = bench.any(1, "ready")
    bench.set(dut.o.ready, ready)
    got = bench.wire(dut.o.valid & ready)
    o = dut.o.payload
    last = o.last
    # The watched element is the word with the flag that it came with.
    queue = keeps_order(bench, "the hold", put, dut.i.payload.word, got, o.word, most=1)
    marked = bench.register(1, "marked")  # the word inside has ended a packet at the input
    bench.next(marked.eq(Mux(put, dut.i.payload.last, marked)))
    place = bench.register(range(4), "place")
    bench.next(place.eq(Mux(got, Mux(last, 0, place + 1), place)))
    alone = bench.register(range(5), "alone")  # cycles that the word inside has been alone
    bench.next(alone.eq(Mux(put, 0, Mux(dut.i.valid | (alone == 4), alone, alone + 1))))
    ends = marked | (place == 3) | (alone == 4)
    bench.claim("a packet ends where it must, and nowhere else", ~dut.o.valid | (last == ends))
    inside = queue.level != 0
    bench.claim(
        "a word leaves when its packet ends or goes on",
        dut.o.valid == (inside & (ends | dut.i.valid)),
    )
    bench.claim("a word is taken while there is room", dut.i.ready == (~inside | ready))
    bench.invariant(bench.inside(dut, "full") == inside)
    bench.invariant(bench.inside(dut, "place") == place)
    bench.invariant(~inside | (bench.inside(dut, "is_last") == ends))
    bench.invariant(~inside | (alone == 4) | (bench.inside(dut, "silence") == 3 - alone))
    bench.cover("a packet ends with its fourth word", got & last & ~marked & (alone == 0))
    bench.cover("a packet ends with silence", got & last & ~marked & (place == 0))


@proof(
    "reset-stretch",
    says="a reset lasts as long as an accelerator needs, and no longer",
    component="ResetStretch, 4 cycles",
    depth=12,
    induction=2,
    mutate=(ResetStretch,),
)
def reset_stretch(bench):
    """A reset of four cycles, which may begin again at any time."""
    dut = bench.add(ResetStretch(4))
    restart = bench.any(1, "restart")
    bench.set(dut.restart, restart)
    bench.set(bench.reset, bench.any(1, "outer"))
    since = bench.register(range(5), "since")
    bench.next(since.eq(Mux(restart | bench.reset, 0, Mux(since < 4, since + 1, 4))))
    bench.claim("reset lasts four cycles from the last cause on", dut.reset == (since < 4))
    left = bench.inside(dut, "left")
    bench.invariant(Mux(since < 4, left == 3 - since, left == 0))
    bench.cover("reset ends and begins again", dut.reset & bench.past(~dut.reset))


@proof(
    "register-file",
    says="registers hold, show, clear and refuse what their table says",
    component="RegisterFile, fields of all kinds",
    depth=8,
    induction=2,
    mutate=(RegisterFile,),
)
def register_file(bench):
    """Registers of every kind, against registers of the proof's own."""
    fields = (
        Field(name="SHOWN", offset=0, bits=2, description="."),
        Field(name="KEPT", offset=7, bits=3, access="rw", reset=5, description="."),
        Field(name="SEEN", offset=10, bits=2, access="w1c", description="."),
        Field(name="ACT", offset=31, access="wo", description="."),
    )
    table = RegisterTable(
        "t",
        (
            Register(name="A", address=4, description=".", fields=fields),
            Register(name="B", address=8, description=".", fields=fields[:1], stored=True),
        ),
    )
    dut = bench.add(RegisterFile(table))
    bus = dut.bus
    values = {name: bench.any(len(getattr(bus, name)), name) for name in REQUEST}
    bench.drive(bus, **values)
    shown, seen = bench.any(2, "shown"), bench.any(2, "seen")
    bench.set(dut.a_shown, shown)
    ready = bench.any(1, "ready")
    bench.set(dut.stored_ready, ready)
    bench.set(dut.stored_data, bench.any(32, "stored"))
    bench.set(dut.a_seen, seen)
    bench.assume(~(bus.read & bus.write))
    asked = bus.read | bus.write
    waits = bench.past(asked & ~bus.done)
    request = Cat(values.values())
    bench.assume(~waits | (request == bench.past(request)))
    is_a, is_b = (bus.address[2:] == word for word in (1, 2))
    begins = bench.wire(asked & ~bus.done & (ready | ~is_b))
    began = bench.past(begins)
    bench.claim("an access is done in the next cycle, once its memory is ready", bus.done == began)
    bench.claim("a memory is asked for the address", dut.stored_address == bus.address)
    writes = begins & bus.write & is_a
    low, high = (writes & strobe for strobe in (bus.strobe[0], bus.strobe[1]))
    kept, held = bench.register(3, "kept", init=5), bench.register(2, "held")
    bench.next(
        kept.eq(Cat(Mux(low, bus.data[7], kept[0]), Mux(high, bus.data[8:10], kept[1:]))),
        held.eq(held & ~(bus.data[10:12] & high.replicate(2)) | seen),
    )
    bench.claim("a kept field is what was written last", dut.a_kept == kept)
    bench.claim("bits are seen until they are cleared", dut.a_held == held)
    acted = bench.past(writes & bus.strobe[3] & bus.data[31])
    bench.claim("a command lasts one cycle", dut.a_act == acted)
    answer = Mux(
        bench.past(is_b),
        dut.stored_data,
        bench.past(Mux(is_a, Cat(shown, C(0, 5), kept, held), C(0, 32))),
    )
    bench.claim("a read shows the register", ~began | (bus.answer == answer))
    refused = Mux(bus.write, ~is_a, ~is_a & ~is_b)
    bench.claim("other accesses are refused", ~began | (bus.refused == bench.past(refused)))
    bench.cover("a read sees what was written", bus.done & bus.read & (bus.answer[7:12] == 0x1A))


REQUEST = ("read", "write", "address", "data", "strobe")
