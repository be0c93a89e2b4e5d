# SPDX-License-Identifier: Apache-2.0
"""A core of an aggregate: it owns the keys of its share, and their windows."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby

from .accumulator import PaneAccumulator
from .target_choice import TargetChoice
from .window_scan import NAMING, WindowScan
from .words import CoreKind, core_word, value_result

__all__ = ["AggregateCore"]


class AggregateCore(wiring.Component):
    """Reduce the tuples of the keys that belong to this core, window by window.

    All cores get all words. A core takes the keys of a tuple that are its own, one per cycle. When
    a pane ends, the tuples of the next one go to another bank, while the windows of all keys move
    on (:class:`~hdl.aggregate.window_scan.WindowScan`). A word that ends a pane waits until the
    pane before it has been scanned, and tuples wait behind it. So panes with at least as many
    tuples as the core has keys cost no cycle beside their tuples, as long as results are taken.

    Results come sorted by the boundary of their window (Lemma 2), then by key. Behind those of a
    window comes a star.

    Latency: :attr:`latency` cycles from the word that ends a pane to the value of the first key.
    Throughput: 1 tuple per cycle, or 1 of its keys in this core per cycle if there are several. A
    pane takes ``core_keys + overhead`` cycles at the least, a window as many as it has results.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Attributes
    ----------
    overhead : int
        Cycles of a pane beside those of its keys.

    Members
    -------
    position : In(range(parameters.cores))
        Number of the core.
    words : In(stream.Signature(core_word(parameters)))
    results : Out(stream.Signature(value_result(parameters)))
    reset : In(1)
        Resets all registers of the core.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.accumulator = PaneAccumulator(parameters)
        self.scan = WindowScan(
            parameters,
            settling=1 + self.accumulator.settling + NAMING,
            entry_latency=self.accumulator.latency_of_scan,
        )
        self.latency = self.scan.latency
        self.overhead = self.scan.overhead
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(core_word(parameters))),
                "results": Out(stream.Signature(value_result(parameters))),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.accumulator = accumulator = self.accumulator
        m.submodules.scan = scan = self.scan
        connect(m, scan.results, flipped(self.results))
        word, bank = self.words.payload, Signal()
        is_tuple = word.kind == CoreKind.TUPLE
        m.submodules.choice = choice = TargetChoice(self.parameters)
        m.d.comb += [
            choice.present.eq(self.words.valid & is_tuple & scan.tuples),
            choice.position.eq(self.position),
            choice.targets.eq(word.body.tuple.targets),
            self.words.ready.eq(Mux(is_tuple, scan.tuples & choice.last, scan.idle)),
            scan.start.eq(self.words.valid & ~is_tuple & scan.idle),
            scan.kind.eq(word.kind),
            scan.job.eq(word.body.job),
            scan.bank.eq(bank),
            scan.position.eq(self.position),
            accumulator.scanned.eq(scan.scanned),
            accumulator.scan_row.eq(scan.scan_row),
            accumulator.clear.eq(scan.clear),
            accumulator.clear_row.eq(scan.clear_row),
            scan.entry.eq(accumulator.entry),
        ]
        m.d.sync += accumulator.add.eq(choice.found)
        with m.If(self.words.valid):
            m.d.sync += [
                accumulator.bank.eq(bank),
                accumulator.row.eq(choice.row),
                accumulator.lifted.eq(word.body.tuple.lifted),
            ]
        with m.If(scan.start & (word.kind == CoreKind.CLOSE)):
            m.d.sync += bank.eq(~bank)
        self.elaborate_faults(m, bank)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_faults(self, m, bank):
        """Remember the first key since CLEAR whose reduction needed more bits than it has.

        The star of a pane tells of the tuples up to its end, however many have come since. So an
        overflow first belongs to its bank, and counts once a job of that bank has settled.
        """
        scan, accumulator = self.scan, self.accumulator
        pending = [Signal(name=f"pending_{n}") for n in range(2)]
        rows = [Signal.like(scan.exceeded_row, name=f"pending_row_{n}") for n in range(2)]
        for n in range(2):
            with m.If(accumulator.exceeded & (accumulator.exceeded_bank == n) & ~pending[n]):
                m.d.sync += [pending[n].eq(1), rows[n].eq(accumulator.exceeded_row)]
        faulty, row, job_bank = Signal(), Signal.like(scan.exceeded_row), Signal()
        with m.If(scan.start):
            m.d.sync += job_bank.eq(bank)
        with m.If(scan.settled):
            m.d.sync += Array(pending)[job_bank].eq(0)
        with m.If(~faulty):
            with m.If(scan.settled & Array(pending)[job_bank]):
                m.d.sync += [faulty.eq(1), row.eq(Array(rows)[job_bank])]
            with m.Elif(scan.exceeded):
                m.d.sync += [faulty.eq(1), row.eq(scan.exceeded_row)]
        clearing = Signal()  # a CLEAR is under way, whose mark tells of the faults before it
        with m.If(clearing & scan.tuples):  # its mark has been sent
            m.d.sync += [clearing.eq(0), faulty.eq(0)]
        with m.If(scan.start):
            m.d.sync += clearing.eq(self.words.payload.kind == CoreKind.CLEAR)
        key = Signal.like(scan.faulty_key, reset_less=True)
        m.d.sync += key.eq(Mux(faulty, row * self.parameters.cores + self.position, 0))
        m.d.comb += [scan.faulty.eq(faulty), scan.faulty_key.eq(key)]
