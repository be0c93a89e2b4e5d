# SPDX-License-Identifier: Apache-2.0
"""From panes to windows: their memory, running windows, and the scan of all keys."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.memory.columns import ColumnBank, DeepColumn, KeyColumn
from hdl.streams.registers import SteadyQueue, delayed

from .aggregate_parameters import (
    delta_reductions,
    exceeds,
    pane_reductions,
    partial_shape,
    running_shape,
    window_shape,
)
from .trees import PaneTree, cell_layout
from .words import CoreKind, ValueKind, entry_layout, job_layout, value_result, window_layout

__all__ = ["NAMING", "PaneStore", "RunningWindows", "WindowScan", "delta_layout", "running_layout"]


def delta_layout(parameters):
    """Return the layout of the partials of one pane that are taken out of windows again."""
    return data.StructLayout(
        {rule.name: partial_shape(parameters, rule) for rule in delta_reductions(parameters)}
    )


def running_layout(parameters):
    """Return the layout of a key's running window.

    ``age``: panes since the last pane with a tuple, up to the panes of a window, which then is
    empty.
    """
    windows = {rule.name: running_shape(parameters, rule) for rule in delta_reductions(parameters)}
    return data.StructLayout({"age": range(parameters.panes + 1), **windows})


class RunningWindows(wiring.Component):
    """Move the window of a key by one pane: add the pane that ends, take out the one that leaves.

    Latency: 3 cycles. Throughput: 1 key per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    present : In(1)
        A key is at the inputs; otherwise the registers may keep their values.
    entry : In(entry_layout(parameters))
        Entry of the key in the pane that ends.
    oldest : In(delta_layout(parameters))
        Partials of the pane that leaves.
    window : In(running_layout(parameters))
    leaves : In(1)
        A pane leaves, so ``oldest`` counts; constant while keys are under way.
    first : In(1)
        No pane has ended before, so ``window`` means nothing; constant like ``leaves``.
    size : In(range(parameters.panes + 1))
        Panes of a window; constant like ``leaves``.
    moved : Out(running_layout(parameters))
    filled : Out(1)
        The moved window holds a tuple.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 3
        super().__init__(
            {
                "present": In(1),
                "entry": In(entry_layout(parameters)),
                "oldest": In(delta_layout(parameters)),
                "window": In(running_layout(parameters)),
                "leaves": In(1),
                "first": In(1),
                "size": In(range(parameters.panes + 1)),
                "moved": Out(running_layout(parameters)),
                "filled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        names = [rule.name for rule in delta_reductions(self.parameters)]
        seen = {"touched": self.entry.touched, "age": self.window.age}
        for name in names:
            seen |= {
                f"entry_{name}": self.entry.partial[name],
                f"oldest_{name}": self.oldest[name],
                f"window_{name}": self.window[name],
            }
        with m.If(self.present):
            seen = delayed(m, seen, "seen", flags=())
        at_limit = seen["age"] == self.size
        older = Mux(self.first, self.size, Mux(at_limit, self.size, seen["age"] + 1))
        aged = {"age": Mux(seen["touched"], 0, older)[: len(self.moved.age)]}
        for name in names:
            added = Mux(seen["touched"], seen[f"entry_{name}"], 0)
            taken = Mux(self.leaves, seen[f"oldest_{name}"], 0)
            aged[f"delta_{name}"] = added - taken
            aged[f"window_{name}"] = Mux(self.first, 0, seen[f"window_{name}"])
        aged = delayed(m, aged, "aged", flags=())
        m.d.sync += [self.moved.age.eq(aged["age"]), self.filled.eq(aged["age"] != self.size)]
        for name in names:
            m.d.sync += self.moved[name].eq(aged[f"window_{name}"] + aged[f"delta_{name}"])
        return m


class PaneStore(wiring.Component):
    """Memories of ended panes, by key: one for reductions by delta, one for those by panes.

    By delta, a window needs one pane only, the one that leaves it, so there is one deep memory. By
    panes, it needs all of them at once, so every slot is a memory of its own. The pane that ends
    takes the slot of the one that leaves.

    Latency: :attr:`LATENCY` cycles from ``row`` to ``oldest`` and ``cells``. Throughput: 1 key
    read and 1 key written per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    slot : In(range(parameters.panes))
        Slot of the pane that ends; constant while keys are under way.
    row : In(range(parameters.rows))
        Key whose panes are read.
    oldest : Out(delta_layout(parameters))
        What slot ``slot`` holds.
    cells : Out(cell_layout(parameters)).array(parameters.panes)
        What all slots hold; not there without reductions by panes.
    write : In(1)
        Keep ``entry`` as the pane of key ``place`` in slot ``slot``.
    place : In(range(parameters.rows))
    entry : In(entry_layout(parameters))
    """

    LATENCY = DeepColumn.LATENCY

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = self.LATENCY
        self._tree = bool(pane_reductions(parameters))
        row = range(parameters.rows)
        cells = Out(cell_layout(parameters)).array(parameters.panes)
        super().__init__(
            {
                "slot": In(range(max(2, parameters.panes))),
                "row": In(row),
                "oldest": Out(delta_layout(parameters)),
                "write": In(1),
                "place": In(row),
                "entry": In(entry_layout(parameters)),
                **({"cells": cells} if self._tree else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if delta_reductions(self.parameters):
            self.elaborate_ring(m)
        if self._tree:
            self.elaborate_slots(m)
        return m

    def elaborate_ring(self, m):
        """Keep the partials of delta reductions; those of a key without a tuple are zero."""
        depth = self.parameters.slots * self.parameters.rows
        m.submodules.ring = ring = DeepColumn(width=self.oldest.shape().size, depth=depth)
        slot = self.slot[: (self.parameters.slots - 1).bit_length()]
        kept = Signal(self.oldest.shape(), name="kept")
        with m.If(self.entry.touched):
            m.d.comb += [
                kept[rule.name].eq(self.entry.partial[rule.name])
                for rule in delta_reductions(self.parameters)
            ]
        m.d.comb += [
            ring.address.eq(Cat(self.row, slot)),
            ring.write.eq(self.write),
            ring.place.eq(Cat(self.place, slot)),
            ring.row.eq(kept),
            Value.cast(self.oldest).eq(ring.data),
        ]

    def elaborate_slots(self, m):
        """Keep the partials of all panes side by side."""
        cell = cell_layout(self.parameters)
        kept = Signal(cell, name="kept_cell")
        m.d.comb += kept.touched.eq(self.entry.touched)
        m.d.comb += [
            kept[rule.name].eq(self.entry.partial[rule.name])
            for rule in pane_reductions(self.parameters)
        ]
        slots = [ColumnBank(width=cell.size, depth=self.parameters.rows) for _ in self.cells]
        late = {"row": self.row}
        for cycle in range(self.latency - slots[0].latency):
            late = delayed(m, late, f"late_{cycle}", flags=())
        for n, (slot, data_) in enumerate(zip(slots, self.cells, strict=True)):
            m.submodules[f"slot_{n}"] = slot
            m.d.comb += [
                slot.address.eq(late["row"]),
                slot.write.eq(self.write & (self.slot == n)),
                slot.place.eq(self.place),
                slot.row.eq(kept),
                Value.cast(data_).eq(slot.data),
            ]


#: Cycles from the end of a key's scan, or of a tuple's way, until a star can name it as a fault.
NAMING = 3


class WindowScan(wiring.Component):
    """Do the jobs of a core, one after the other, beside the tuples that go on in the other bank.

    A CLOSE reads the entries of all keys in the bank of the pane that ends, moves the window of
    each key by one pane, forgets the entry, and, if a window ends, sends the reductions of every
    key whose window holds a tuple, in the order of keys, and then a star. A CLEAR forgets all
    entries. A MARK does nothing. If it ``answers``, a CLEAR or MARK sends a mark.

    A job first waits for ``settling`` cycles, until the tuples before it are in their entries.

    Latency: :attr:`latency` cycles from ``start`` to the value of the first key. Throughput: 1 key
    per cycle, with or without a tuple; :attr:`overhead` cycles more for a job.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    settling : int
        Cycles from a job's ``start`` until all tuples before it are in their entries, and their
        faults in ``faulty``.
    entry_latency : int
        Cycles from ``scan_row`` to ``entry``.

    Members
    -------
    start : In(1)
        Begin a job; only while ``idle``.
    kind : In(CoreKind)
    job : In(job_layout(parameters))
    bank : In(1)
        Bank of the pane that ends.
    position : In(range(parameters.cores))
        Number of the core.
    idle : Out(1)
        From a register.
    tuples : Out(1)
        Tuples may come: no CLEAR or MARK is under way; from a register.
    settled : Out(1)
        All tuples before the job are in their entries; in one cycle of each job.
    scanned, scan_row, entry, clear, clear_row
        The other side of those of a :class:`hdl.aggregate.accumulator.PaneAccumulator`.
    exceeded : Out(1)
        A reduction of the window of the key in ``exceeded_row`` needed more bits than it has.
    exceeded_row : Out(range(parameters.rows))
    faulty : In(1)
        ``faulty_key`` had an overflow of range since the last CLEAR, before this job.
    faulty_key : In(parameters.key_bits)
    results : Out(stream.Signature(value_result(parameters)))
    """

    def __init__(self, parameters, *, settling, entry_latency):
        self.parameters = parameters
        self.settling = settling
        self.store = PaneStore(parameters)
        self.running = RunningWindows(parameters)
        self.tree = PaneTree(parameters) if pane_reductions(parameters) else None
        self._entry_latency = entry_latency
        folding = max(part.latency for part in (self.running, self.tree) if part is not None)
        #: Cycles from the issue of a key to its value at the queue.
        self.stages = self.store.latency + folding
        self.latency = 1 + settling + self.stages + 1
        self.overhead = 2 + settling + NAMING + self.stages
        row = range(parameters.rows)
        super().__init__(
            {
                "start": In(1),
                "kind": In(CoreKind),
                "job": In(job_layout(parameters)),
                "bank": In(1),
                "position": In(range(max(2, parameters.cores))),
                "idle": Out(1, init=1),
                "tuples": Out(1, init=1),
                "settled": Out(1),
                "scanned": Out(2),
                "scan_row": Out(row),
                "entry": In(entry_layout(parameters)),
                "clear": Out(2),
                "clear_row": Out(row),
                "exceeded": Out(1),
                "exceeded_row": Out(row),
                "faulty": In(1),
                "faulty_key": In(parameters.key_bits),
                "results": Out(stream.Signature(value_result(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = SteadyQueue(
            value_result(self.parameters), stages=self.stages + 1
        )
        connect(m, queue.o, flipped(self.results))
        job = Signal(job_layout(self.parameters), reset_less=True)
        kind = Signal(CoreKind)
        issued = self.elaborate_steps(m, job, kind, queue.room)
        stages = [issued]
        for n in range(self.stages):
            stages.append(delayed(m, stages[-1], f"stage_{n}", flags=("valid", "ends")))
        window = self.elaborate_windows(m, job, kind, stages)
        self.elaborate_results(m, job, kind, stages[-1], window, queue.i)
        with m.If(stages[-1]["ends"]):
            m.d.sync += [self.idle.eq(1), self.tuples.eq(1), self.scanned.eq(0)]
        with m.If(self.start):
            m.d.sync += [self.idle.eq(0), self.tuples.eq(self.kind == CoreKind.CLOSE)]
        return m

    def elaborate_steps(self, m, job, kind, room):
        """Wait, issue all keys, then the end of the job; return what is issued in a cycle."""
        last = self.parameters.core_keys - 1
        wait = Signal(range(self.settling))
        row = Signal.like(self.scan_row, name="next_row")
        key = Signal(range(max(2, self.parameters.rows * self.parameters.cores)), name="next_key")
        bank = Signal()
        issued = {"valid": Signal(), "ends": Signal(), "row": row, "key": key}
        with m.FSM():
            with m.State("WAIT_FOR_JOB"):
                m.d.sync += [wait.eq(self.settling - 1), row.eq(0), key.eq(self.position)]
                with m.If(self.start):
                    m.d.sync += [job.eq(self.job), kind.eq(self.kind), bank.eq(self.bank)]
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(wait != 0):
                    m.d.sync += wait.eq(wait - 1)
                with m.Else():
                    m.d.comb += self.settled.eq(1)
                    m.d.sync += wait.eq(NAMING)
                    m.next = "END"
                    with m.If(kind != CoreKind.MARK):
                        m.d.sync += self.scanned.eq(
                            Mux(kind == CoreKind.CLEAR, 0b11, Cat(~bank, bank))
                        )
                        m.next = "SCAN"
            with m.State("SCAN"):
                with m.If(room):
                    m.d.comb += issued["valid"].eq(1)
                    m.d.sync += [row.eq(row + 1), key.eq(key + self.parameters.cores)]
                    with m.If(row == last):
                        m.next = "END"
            with m.State("END"):
                with m.If(wait != 0):
                    m.d.sync += wait.eq(wait - 1)
                with m.Elif(room):
                    m.d.comb += issued["ends"].eq(1)
                    m.next = "WAIT_FOR_JOB"
        return issued

    def elaborate_windows(self, m, job, kind, stages):
        """Lead every issued key through its memories; return its window."""
        m.submodules.store = store = self.store
        m.submodules.running = running = self.running
        m.submodules.windows = windows = KeyColumn(
            width=running_layout(self.parameters).size, depth=self.parameters.rows
        )
        read, closes = self.store.latency, kind == CoreKind.CLOSE
        moved = stages[read + running.latency]
        # A job is there long before its first key, so what follows from it has a register.
        leaves, first = Signal(), Signal()
        m.d.sync += [leaves.eq(job.slot < job.filled), first.eq(job.filled == 0)]
        entry = {"entry": Value.cast(self.entry)}
        for n in range(running.latency):
            entry = delayed(m, entry, f"entry_{n}", flags=())
        m.d.comb += [
            self.scan_row.eq(stages[read - self._entry_latency]["row"]),
            store.slot.eq(job.slot),
            store.row.eq(stages[0]["row"]),
            windows.address.eq(stages[read - windows.latency]["row"]),
            running.present.eq(stages[read]["valid"]),
            running.entry.eq(self.entry),
            running.oldest.eq(store.oldest),
            Value.cast(running.window).eq(windows.data),
            running.leaves.eq(leaves),
            running.first.eq(first),
            running.size.eq(job.size),
            windows.write.eq(moved["valid"] & closes),
            windows.place.eq(moved["row"]),
            windows.row.eq(running.moved),
            store.write.eq(moved["valid"] & closes),
            store.place.eq(moved["row"]),
            Value.cast(store.entry).eq(entry["entry"]),
            self.clear.eq(Mux(moved["valid"], self.scanned, 0)),
            self.clear_row.eq(moved["row"]),
        ]
        return self.elaborate_values(m, job, kind, stages)

    def elaborate_values(self, m, job, kind, stages):
        """Return the reductions of a key's window, and whether it holds a tuple, at the end."""
        deltas = delta_reductions(self.parameters)
        running, window = self.running, Signal(window_layout(self.parameters))
        early = {"filled": running.filled}
        early |= {rule.name: running.moved[rule.name] for rule in deltas}
        for n in range(self.stages - self.store.latency - running.latency):
            early = delayed(m, early, f"early_{n}", flags=())
        m.d.comb += [window[rule.name].eq(early[rule.name]) for rule in deltas]
        outside = [
            exceeds(early[rule.name], window_shape(self.parameters, rule)) for rule in deltas
        ]
        if self.tree is not None:
            outside.append(self.elaborate_tree(m, job, stages, window))
        # A window that is not sent is none, and one without a tuple is zero.
        sent = stages[-1]["valid"] & job.answers & (kind == CoreKind.CLOSE)
        m.d.sync += self.exceeded.eq(sent & early["filled"] & Cat(outside).any())
        m.d.sync += self.exceeded_row.eq(stages[-1]["row"])
        return window, early["filled"]

    def elaborate_tree(self, m, job, stages, window):
        """Combine the panes of a key; return whether that needed too many bits."""
        m.submodules.tree = tree = self.tree
        m.d.comb += [
            tree.present.eq(stages[self.store.latency]["valid"]),
            tree.newest.touched.eq(self.entry.touched),
            tree.slot.eq(job.slot),
            tree.filled.eq(job.filled),
            *(i.eq(o) for i, o in zip(tree.cells, self.store.cells, strict=True)),
        ]
        rules = pane_reductions(self.parameters)
        late = {rule.name: tree.window[rule.name] for rule in rules} | {"outside": tree.exceeded}
        for n in range(self.stages - self.store.latency - tree.latency):
            late = delayed(m, late, f"late_{n}", flags=())
        for rule in rules:
            m.d.comb += [
                tree.newest[rule.name].eq(self.entry.partial[rule.name]),
                window[rule.name].eq(late[rule.name]),
            ]
        return late["outside"]

    def elaborate_results(self, m, job, kind, last, window, results):
        """Send the value of a key, or the star or mark at the end of a job."""
        reductions, filled = window
        result, closes = results.payload, kind == CoreKind.CLOSE
        m.d.comb += [
            results.valid.eq(job.answers & (last["ends"] | (last["valid"] & closes & filled))),
            result.boundary.eq(job.boundary),
            result.kind.eq(Mux(closes, ValueKind.STAR, ValueKind.MARK)),
        ]
        with m.If(last["valid"]):
            m.d.comb += [
                result.kind.eq(ValueKind.VALUE),
                result.body.value.key.eq(last["key"]),
                result.body.value.window.eq(reductions),
            ]
        with m.Else():
            m.d.comb += [
                result.body.faults.eq(job.faults),
                result.body.faults.range.eq(self.faulty),
            ]
            with m.If(~job.faults.capacity):
                m.d.comb += result.body.faults.key.eq(self.faulty_key)
