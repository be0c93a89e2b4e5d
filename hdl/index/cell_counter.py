# SPDX-License-Identifier: Apache-2.0
"""Counting through the cells of a probe."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.words.inputs import Control, control_layout, coordinate_layout

from .layouts import bank_bits, bank_count, group_count, visit_layout, visiting_layout

__all__ = ["CellCounter", "CellDigit", "CellSequencer"]


class CellDigit(wiring.Component):
    """Count the steps of a probe along one field of the grid.

    A step is one cell, or two neighbouring cells if the field owns the lowest bit of the bucket
    number, which selects the bank of the head table.

    Latency: 1 cycle from ``begin`` or ``step`` to ``ended`` and ``both``; 2 from ``configure`` to
    ``mask``, ``stride`` and ``paired``. Throughput: 1 step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; its comparator is a band.

    Members
    -------
    configure : In(1)
        Set the field's part of the bucket number to ``part``; only while no probe is in progress.
    part : In(coordinate_layout(parameters))
    mask : Out(bucket_bits)
        Bits of the bucket number that belong to the field.
    stride : Out(bucket_bits)
        What a step adds to the bucket number; undefined if the part has no bits.
    paired : Out(1)
        A step covers two cells.
    begin : In(1)
        Start a range of ``extent + 1`` cells; ``step`` is ignored in this cycle.
    extent : In(bucket_bits)
    step : In(1)
        Advance; after the last step, the same range starts again.
    ended : Out(1)
        The current step is the last one; from a register.
    both : Out(1)
        The current step covers two cells.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        bits = parameters.engine.bucket_bits
        super().__init__(
            {
                "configure": In(1),
                "part": In(coordinate_layout(parameters)),
                "mask": Out(bits),
                "stride": Out(bits),
                "paired": Out(1),
                "begin": In(1),
                "extent": In(bits),
                "step": In(1),
                "ended": Out(1),
                "both": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_part(m)
        # Steps of the range after the first one, and steps left after the current one.
        whole, left = (
            Signal.like(self.extent, name=name, reset_less=True) for name in ("whole", "left")
        )
        single = Signal(reset_less=True)  # the range has a single step
        even = Signal(reset_less=True)  # the last step covers two cells, if paired
        steps = Mux(self.paired, self.extent >> 1, self.extent)
        one = ~self.extent[1:].any() & (self.paired | ~self.extent[0])
        with m.If(self.begin):
            m.d.sync += [
                whole.eq(steps),
                left.eq(steps),
                single.eq(one),
                self.ended.eq(one),
                even.eq(self.extent[0]),
            ]
        with m.Elif(self.step):
            m.d.sync += [
                left.eq(Mux(self.ended, whole, left - 1)),
                self.ended.eq(Mux(self.ended, single, left == 1)),
            ]
        m.d.comb += self.both.eq(self.paired & (even | ~self.ended))
        return m

    def elaborate_part(self, m):
        """Register the field's part; derive ``mask``, ``stride`` and ``paired`` a cycle later."""
        configured = Signal()
        part = Signal.like(self.part, reset_less=True)
        end = Signal(range(2 * len(self.mask) + 1), reset_less=True)  # one past the part's last bit
        m.d.sync += configured.eq(self.configure)
        with m.If(self.configure):
            m.d.sync += [part.eq(self.part), end.eq(self.part.place + self.part.width)]
        paired = (part.place == 0) & (part.width != 0) & (bank_count(self.parameters) > 1)
        own = Cat((part.place <= bit) & (end > bit) for bit in range(len(self.mask)))
        with m.If(configured):
            m.d.sync += [
                self.mask.eq(own),
                self.stride.eq(Mux(paired, 2, 1 << part.place)),
                self.paired.eq(paired),
            ]


class CellCounter(wiring.Component):
    """Count through the cells of a probe, as through the digits of a number.

    The first field counts fastest, and every field wraps around within its own bits. Neighbouring
    cells of the field that owns the lowest bit of the bucket number lie in different banks of the
    head table, so they are visited two at a time; a range with an odd number of cells ends with a
    single one. A probe that nothing can match takes one step and visits no cell.

    The next probe is taken together with the last step of the current one.

    Latency: 1 cycle from a probe to its first cells. Throughput: 1 step per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; its comparator is a band.

    Members
    -------
    arrived : In(1)
        ``probe`` holds the next probe.
    probe : In(visiting_layout(parameters))
    take : Out(1)
        ``probe`` is taken in this cycle.
    filled : Out(1)
        A probe is in progress; from a register.
    step : In(1)
        Advance to the next cells; only while ``filled``.
    last : Out(1)
        The current cells are the last ones of the probe.
    wanted : Out(banks)
        Banks in which the probe visits a bucket in this step.
    addresses : Out(bank_bits(parameters)).array(banks)
        Number of that bucket within each bank.
    tail : Out
        First row that the probe sees.
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        banks, visiting = bank_count(parameters), visiting_layout(parameters)
        super().__init__(
            {
                "arrived": In(1),
                "probe": In(visiting),
                "take": Out(1),
                "filled": Out(1),
                "step": In(1),
                "last": Out(1),
                "wanted": Out(banks),
                "addresses": Out(bank_bits(parameters)).array(banks),
                "tail": Out(visiting["tail"].shape),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        cells = Signal.like(self.probe.cells, reset_less=True)  # cells of the current probe
        cell = Signal.like(cells.start, reset_less=True)  # current cell
        vacant = Signal()  # no probe will be in progress unless one is taken now
        digits = self.elaborate_digits(m, vacant)
        following, ended = cell, Const(1)
        for digit in digits:
            moved = Mux(digit.ended, cells.start, cell + digit.stride)[: len(cell)]
            mask = digit.mask & ended.replicate(len(cell))
            following = (following & ~mask) | (moved & mask)
            m.d.comb += digit.step.eq(self.step & ended)
            ended &= digit.ended
        m.d.comb += [
            self.last.eq(cells.none | ended),
            vacant.eq(~self.filled | (self.step & self.last)),
            self.take.eq(vacant & self.arrived),
        ]
        with m.If(vacant):
            m.d.sync += [
                self.filled.eq(self.arrived),
                self.tail.eq(self.probe.tail),
                cells.eq(self.probe.cells),
                cell.eq(self.probe.cells.start),
            ]
        with m.Elif(self.step):
            m.d.sync += cell.eq(following)
        self.elaborate_banks(m, digits, cell, cells)
        return m

    def elaborate_digits(self, m, vacant):
        """Return one counter per field; each is configured by the control words of its field."""
        digits = []
        for n, _ in enumerate(self.parameters.keys):
            m.submodules[f"digit_{n}"] = digit = CellDigit(self.parameters)
            own = (self.control.op == Control.COORDINATE) & (self.control.index == n)
            m.d.comb += [
                digit.configure.eq(self.configure & own),
                digit.part.as_value().eq(self.control.value),
                digit.begin.eq(vacant),
                digit.extent.eq(self.probe.cells[f"extent_{n}"]),
            ]
            digits.append(digit)
        return digits

    def elaborate_banks(self, m, digits, cell, cells):
        """Select the banks that are visited and the bucket in each.

        The lowest bit of a cell, XORed with the lowest bit of the hash, selects its bank. The upper
        bits of the two cells of a pair differ only if the odd cell is the first of them.
        """
        banks = bank_count(self.parameters)
        if banks == 1:
            m.d.comb += [self.wanted.eq(~cells.none), self.addresses[0].eq(cell ^ cells.hash)]
            return
        mask = Signal.like(cell, name="paired_mask")  # bits of the field that is counted in pairs
        m.d.sync += mask.eq(reduce(or_, (d.mask & d.paired.replicate(len(cell)) for d in digits)))
        odd = cell[1:]
        even = (odd & ~mask[1:]) | ((odd + cell[0]) & mask[1:])
        both = Cat(digit.both for digit in digits).any()
        for bank in range(banks):
            turned = cells.hash[0] ^ bank  # this bank holds the odd cells
            m.d.comb += [
                self.wanted[bank].eq(~cells.none & (both | (cell[0] == turned))),
                self.addresses[bank].eq(Mux(turned, odd, even) ^ cells.hash[1:]),
            ]


class CellSequencer(wiring.Component):
    """Visit every bucket that may hold matches of a probe, probe by probe.

    An equality probe visits one bucket. A band probe visits cells, at most one in each bank of the
    head table at a time (:class:`CellCounter`). A probe that nothing can match takes one cycle and
    visits no bucket.

    Latency: :attr:`latency` cycles from a group to its first visit. Throughput: 1 visit per cycle,
    also across groups if each of them has at least two visits.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    closed : In(1)
        A closed group of ``count`` probes is available.
    count : In
    arrived : In(1)
        ``probe`` holds the next probe.
    probe : In(visiting_layout(parameters))
    visited : Out(1)
        ``probe`` is not needed after this cycle.
    free : In(group_count(parameters))
        Group numbers that are not in use.
    take : Out(group_count(parameters))
        The group is taken and gets this number; one-hot.
    room : In(1)
        The walks of another visit can be queued.
    begun : Out(banks)
        Banks in which ``visit`` has a bucket; from a register.
    final : Out(1)
        The visits of the group end in this cycle, with ``visit`` if there is one; from a register.
    visit : Out(visit_layout(parameters))
    configure : In(1)
        Execute ``control``.
    control : In(control_layout(parameters))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 4  # seen, taken, begun, visited
        super().__init__(
            {
                "closed": In(1),
                "count": In(range(parameters.engine.probes + 1)),
                "arrived": In(1),
                "probe": In(visiting_layout(parameters)),
                "visited": Out(1),
                "free": In(group_count(parameters)),
                "take": Out(group_count(parameters)),
                "room": In(1),
                "begun": Out(bank_count(parameters)),
                "final": Out(1),
                "visit": Out(visit_layout(parameters)),
                "configure": In(1),
                "control": In(control_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number = Signal(range(len(self.free)))  # of the current group, else of the next
        place = Signal.like(self.visit.probe)  # place of the current probe in the probe table
        step, ends = Signal(), Signal()
        filled, last, wanted, cells = self.elaborate_cells(m, step)
        running = self.elaborate_groups(m, number, step & last, ends)

        visit = Signal.like(self.visit, reset_less=True)
        m.d.comb += [step.eq(running & self.room & filled), self.visit.eq(visit)]
        m.d.sync += [
            self.begun.eq(wanted & step.replicate(len(wanted))),
            self.final.eq(ends),
            visit.group.eq(number),
        ]
        with m.If(step):
            m.d.sync += [
                *(Value.cast(visit[name]).eq(value) for name, value in cells.items()),
                visit.probe.eq(place),
            ]
        with m.If(step & last):
            m.d.sync += place.eq(place + 1)
        return m

    def elaborate_groups(self, m, number, visited, ends):
        """Take groups, each while the previous one is in progress; return whether one has probes.

        ``visited`` is high when the visits of a probe end in this cycle. ``ends`` is driven high
        when those of a group do. The value returned is high while a group that has probes is in
        progress.
        """
        running = Signal()
        void = Signal()  # the current group has no probes
        left = Signal.like(self.count)  # probes left in the current group
        only = Signal()  # exactly one probe is left
        waiting = Signal()  # a group has been taken, but has not begun
        count = Signal.like(self.count, name="next_count", reset_less=True)  # probes of that group
        # In the previous cycle there was a closed group, and the next group number was free.
        available = Signal()
        following = Signal.like(number)
        take = Signal()
        begins = Signal()  # the waiting group, if there is one, begins
        m.d.comb += [
            ends.eq(void | (visited & only)),
            begins.eq(~running | (visited & only)),
            take.eq(available & ~waiting),
            self.take.eq(take << following),
        ]
        m.d.sync += [
            available.eq(self.closed & self.free.bit_select(following, 1) & ~take),
            following.eq(following + take),
            waiting.eq(take | (waiting & ~begins)),
            number.eq(number + ends),
        ]
        with m.If(~waiting):
            m.d.sync += count.eq(self.count)
        with m.If(begins):
            m.d.sync += [
                running.eq(waiting & (count != 0)),
                void.eq(waiting & (count == 0)),
                left.eq(count),
                only.eq(count == 1),
            ]
        with m.Elif(visited):
            m.d.sync += [left.eq(left - 1), only.eq(left == 2)]
        return running

    def elaborate_cells(self, m, step):
        """Return whether a probe is available, and its current visit.

        The visit is returned as three values: whether it is the last of the probe, the banks in
        which it has a bucket, and the fields of ``visit`` that name the buckets and the first
        visible row.
        """
        if not self.parameters.bounded:
            m.d.comb += self.visited.eq(step)
            visit = {"addresses": self.probe.bucket, "tail": self.probe.tail}
            return self.arrived, Const(1), Const(1), visit
        m.submodules.cells = cells = CellCounter(self.parameters)
        m.d.comb += [
            cells.arrived.eq(self.arrived),
            cells.probe.eq(self.probe),
            cells.step.eq(step),
            cells.configure.eq(self.configure),
            cells.control.eq(self.control),
            self.visited.eq(cells.take),
        ]
        visit = {"addresses": Cat(cells.addresses), "tail": cells.tail}
        return cells.filled, cells.last, cells.wanted, visit
