# SPDX-License-Identifier: Apache-2.0
"""Proofs about reads from external memory: AXI's rules, and rows that come in order."""

from types import SimpleNamespace

from amaranth import *
from amaranth.utils import ceil_log2

from hdl.external.reads import ReadMaster, RowQueue, drive_address

from .proof import proof
from .small import external_parameters
from .stream_rules import keeps_order, offer, take

__all__ = ["address_channel", "keeps_addresses"]

#: Bytes that no burst of AXI may cross a multiple of.
BOUNDARY = 4096


def address_channel(axi, prefix):
    """Return an address channel of AXI as a stream: ``payload``, ``valid`` and ``ready``."""
    names = ("id", "addr", "len", "size", "burst")
    return SimpleNamespace(
        payload=Cat(getattr(axi, f"{prefix}{name}") for name in names),
        valid=getattr(axi, f"{prefix}valid"),
        ready=getattr(axi, f"{prefix}ready"),
    )


def keeps_addresses(bench, axi, prefix, parameters):
    """Claim that an address channel keeps the rules of AXI4, whatever it asks for."""
    valid, address = (getattr(axi, f"{prefix}{name}") for name in ("valid", "addr"))
    beats = getattr(axi, f"{prefix}len") + 1
    size = parameters.engine.memory_width // 8
    end = address % BOUNDARY + beats * size
    bench.claim("no burst crosses a multiple of 4 KiB", ~valid | (end <= BOUNDARY))
    bench.claim(
        "a burst has as many beats as it may", ~valid | (beats <= parameters.engine.memory_burst)
    )
    bench.claim("addresses are those of whole beats", ~valid | (address % size == 0))
    bench.claim("every beat is as wide as the port", (1 << getattr(axi, f"{prefix}size")) == size)
    bench.claim("addresses rise from beat to beat", getattr(axi, f"{prefix}burst") == 1)


@proof(
    "read-master",
    says="bursts leave by the rules of AXI4, for no more than has a place; rows come in order",
    component="ReadMaster, bursts of 8 beats of 1024 bits, 32 places",
    depth=8,
    mutate=(ReadMaster, drive_address),
)
def read_master(bench):
    """Bursts of up to eight beats of 1024 bits, and a queue with places for four of them."""
    parameters = external_parameters(memory_width=1024, memory_burst=8)
    dut = bench.add(ReadMaster(parameters))
    axi, bursts, burst = dut.axi, dut.bursts, parameters.engine.memory_burst
    put = offer(bench, bursts)
    place, more = bursts.payload.row % burst, bursts.payload.more
    bench.assume(~bursts.valid | (place + more < burst))  # as PassSplitter makes them
    got = take(bench, address_channel(axi, "ar"), "ar")
    keeps_addresses(bench, axi, "ar", parameters)
    row = axi.araddr[ceil_log2(parameters.engine.memory_width // 8) :]
    asked = keeps_order(
        bench, "bursts", put, Cat(bursts.payload.row[: len(row)], more), got,
        Cat(row, axi.arlen[: len(more)]), most=2,
    )  # fmt: skip

    # The memory answers what was asked for, in order, as late as it likes.
    owed = bench.register(range(4 * dut.depth), "owed")
    comes, value = bench.any(1, "comes"), bench.any(len(dut.row), "row")
    response = bench.any(2, "response")
    bench.assume(~comes | (owed != 0))
    bench.drive(axi, rvalid=comes, rdata=value, rresp=response)
    bench.next(owed.eq(owed + Mux(got, axi.arlen + 1, 0) - comes))
    takes = bench.any(1, "take")
    bench.assume(~takes | dut.filled)
    bench.set(dut.take, takes)
    held, promised = (bench.register(range(4 * dut.depth), name) for name in ("held", "promised"))
    bench.next(held.eq(held + comes - takes))
    bench.next(promised.eq(promised + Mux(put, more + 1, 0) - takes))
    bench.claim("data are taken whenever they come", axi.rready)
    bench.claim("all that is outstanding has a place", owed + held <= dut.depth)
    room = bench.wire(promised <= dut.depth - burst)
    bench.claim(
        "a burst is requested while it has places", bursts.ready == ((asked.level < 2) & room)
    )
    bench.claim("filled says that a row is at hand", dut.filled == (held != 0))
    bench.claim("an error is told", dut.wrong == (comes & (response != 0)))
    left = bench.past(bench.past(takes))
    keeps_order(bench, "rows", comes, value, left, dut.row, most=dut.depth + RowQueue.LATENCY)
    bench.cover("every place is promised, and a burst waits", bursts.valid & (promised > 24))


@proof(
    "row-queue",
    says="rows come two cycles after they are taken, in order, and none is lost",
    component="RowQueue, 4 places",
    depth=11,
    mutate=(RowQueue,),
)
def row_queue(bench):
    """A queue of four rows, used according to its contract."""
    dut = bench.add(RowQueue(2, depth=4))
    add, takes, value = bench.any(1, "add"), bench.any(1, "take"), bench.any(2, "row")
    held = bench.register(range(8), "held")
    bench.next(held.eq(held + add - takes))
    bench.assume(~takes | dut.filled)
    bench.assume(~add | (held < 4))
    bench.drive(dut, add=add, take=takes, last=value)
    bench.claim("filled says that there are any", dut.filled == (held != 0))
    left = bench.past(bench.past(takes))
    keeps_order(bench, "queue", add, value, left, dut.row, most=4 + RowQueue.LATENCY)
    bench.cover("queue is full", held == 4)
