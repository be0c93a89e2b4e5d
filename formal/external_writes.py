# SPDX-License-Identifier: Apache-2.0
"""Proof about writes to external memory: AXI's rules, and every row once, in its place."""

from types import SimpleNamespace

from amaranth import *

from hdl.external.rows import WriteBatcher
from hdl.memory.read_ahead import ReadAhead

from .external_reads import address_channel, keeps_addresses
from .proof import proof
from .small import external_parameters
from .stream_rules import answers_within, take

__all__ = []

#: Most rows that are complete and not written: the parent's memory holds more.
MOST = 16


@proof(
    "write-batcher",
    says="complete rows are written once, in order, in whole bursts by the rules of AXI4",
    component="WriteBatcher, bursts of 2 rows",
    depth=11,
    mutate=(WriteBatcher,),
    spared={"place + 1 -> place - 1": "of two rows, the next is the one before"},
)
def write_batcher(bench):
    """Bursts of two rows; rows are complete at any pace, one of them is watched."""
    parameters = external_parameters(memory_burst=2)
    dut = bench.add(WriteBatcher(parameters))
    axi, burst, depth = dut.axi, parameters.engine.memory_burst, parameters.engine.recent_rows
    head = bench.register(len(dut.head), "head")
    grows = bench.any(2, "grows")
    bench.next(head.eq(head + grows))
    bench.set(dut.head, head)
    unwritten = bench.wire((head - dut.written)[: len(head)])
    bench.assume(unwritten + grows <= MOST)

    watched, content = bench.constant(range(depth), "watched"), bench.constant(len(dut.row), "row")
    named = bench.past(bench.past(dut.address == watched))
    bench.set(dut.row, Mux(named, content, bench.any(len(dut.row), "other")))

    asks = take(bench, address_channel(axi, "aw"), "aw")
    keeps_addresses(bench, axi, "aw", parameters)
    names = ("data", "strb", "last")
    data = SimpleNamespace(
        payload=Cat(getattr(axi, f"w{name}") for name in names), valid=axi.wvalid, ready=axi.wready
    )
    sent = take(bench, data, "w")
    comes, response = bench.any(1, "answer"), bench.any(2, "response")
    bench.drive(axi, bvalid=comes, bresp=response)

    asked, gone, done = (bench.register(len(head), name) for name in ("asked", "sent", "written"))
    bench.next(asked.eq(asked + Mux(asks, burst, 0)), gone.eq(gone + sent))
    bench.next(done.eq(done + Mux(comes, burst, 0)))
    owes = bench.wire((gone - done)[: len(head)])
    bench.assume(~comes | (owes >= burst))

    def below(before, after):
        """Return whether one number of rows is at most another one."""
        return ~(after - before)[len(head) - 1]

    bench.claim(
        "bursts are requested in order", ~axi.awvalid | (axi.awaddr == asked[: len(axi.awaddr)])
    )
    bench.claim("bursts are whole", ~axi.awvalid | (axi.awlen == burst - 1))
    bench.claim("only complete rows are written", ~axi.awvalid | below(asked + burst, head))
    bench.claim("data follow their request", ~axi.wvalid | (gone != asked))
    bench.claim(
        "the last beat of a burst is marked",
        ~axi.wvalid | (axi.wlast == (gone % burst == burst - 1)),
    )
    bench.claim("all bytes are written", axi.wstrb.all())
    is_watched = gone[: len(watched)] == watched
    bench.claim("every row is what it was", ~axi.wvalid | ~is_watched | (axi.wdata == content))
    bench.claim("answers are taken whenever they come", axi.bready)
    bench.claim("a row is written when its burst has been answered", dut.written == done)
    bench.claim("an error is told", dut.wrong == (comes & (response != 0)))
    complete = bench.past((head - done)[: len(head)] >= burst)
    bench.claim("busy says that a complete burst is not written", dut.busy == complete)
    due = bench.wire((head - asked)[: len(head)] >= burst)
    answers_within(bench, "a complete burst is requested in time", due & ~axi.awvalid, 2)
    late = bench.wire((gone != asked) & ~axi.wvalid)
    answers_within(bench, "data are not long in following", late, ReadAhead.AHEAD // 2)
    bench.cover("two bursts are under way", (asked - done)[: len(head)] >= 2 * burst)
    bench.cover("the watched row is written", axi.wvalid & is_watched & (content != 0))
