# SPDX-License-Identifier: Apache-2.0
"""Performance counters of an aggregate accelerator."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.counters import COUNTER_BITS, COUNTER_LATENCY, Counter, elaborate_counters
from hdl.local_reset import reset_nearby

__all__ = ["ADDRESS_BITS", "AGGREGATE_COUNTERS", "AggregateCounters"]

#: The counter map. All counters count from reset on; readers take differences.
AGGREGATE_COUNTERS = tuple(
    Counter(name, address, description)
    for address, (name, description) in enumerate(
        [
            ("cycles", "clock cycles"),
            ("tuples", "tuples sent to the cores"),
            ("panes", "panes that ended"),
            ("results", "values of windows emitted"),
            ("stars", "stars emitted"),
            ("marks", "marks emitted"),
            ("ingress_busy", "cycles in which an input word was taken"),
            ("ingress_stalled", "cycles in which an input word had to wait"),
            ("output_busy", "cycles in which a result word was taken"),
            ("output_stalled", "cycles in which a result word had to wait"),
        ]
    )
)
#: Bits of a counter's address. The last address has no counter, as the simulator expects.
ADDRESS_BITS = ceil_log2(len(AGGREGATE_COUNTERS) + 1)


class AggregateCounters(wiring.Component):
    """All counters of :data:`AGGREGATE_COUNTERS`, read through one address.

    Latency: 2 cycles from ``address`` to ``data``; an event is counted 1 cycle late. Throughput:
    every counter counts every cycle.

    Members
    -------
    events : In(len(AGGREGATE_COUNTERS) - 1)
        Which events but ``cycles`` happen in this cycle, in the order of the map.
    address : In(ADDRESS_BITS)
    data : Out(COUNTER_BITS)
        Zero for an address that is not in the map.
    """

    events: In(len(AGGREGATE_COUNTERS) - 1)
    address: In(ADDRESS_BITS)
    data: Out(COUNTER_BITS)

    latency = COUNTER_LATENCY

    def elaborate(self, platform):
        m = Module()
        names = [counter.name for counter in AGGREGATE_COUNTERS]
        increments = {"cycles": 1, **dict(zip(names[1:], self.events, strict=True))}
        elaborate_counters(m, self, AGGREGATE_COUNTERS, increments, shown={})
        return reset_nearby(m, platform)
