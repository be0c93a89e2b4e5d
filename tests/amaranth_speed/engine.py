# SPDX-License-Identifier: Apache-2.0
"""Amaranth's simulator with a queue of the processes that have something to do.

Amaranth's own simulator looks at every process of a design in every step, and there is a step for
each input that a test sets. The queue holds what has to run, so that a step takes as long as what
changes takes. The results are the same: within a step, no process sees what another one computes.
"""

from amaranth.hdl import Signal
from amaranth.sim import _pyrtl, pysim

__all__ = ["queue_processes"]


class Wake:
    """What a change of a signal does to a process of a circuit.

    Parameters
    ----------
    process
        The process, which is to run.
    polarity : int or None
        Value of the signal at which it runs; None for any.
    """

    def __init__(self, process, polarity=None):
        self.process = process
        self.polarity = polarity


class SignalState(pysim._PySignalState):
    """The values of a signal, and the processes that depend on it."""

    __slots__ = ("edges", "processes", "queue")

    def __init__(self, signal, pending, queue):
        super().__init__(signal, pending)
        self.edges = None
        self.processes = []
        self.queue = queue

    def add_waker(self, waker):
        """Add a process, or a function that is called for each change."""
        if type(waker) is not Wake:
            super().add_waker(waker)
        elif waker.polarity is None:
            self.processes.append(waker.process)
        else:
            self.edges = self.edges or ([], [])
            self.edges[waker.polarity].append(waker.process)

    def commit(self):
        """Take the next value; return whether it is another one."""
        if self.curr == self.next:
            return False
        self.queue.extend(self.processes)
        if self.edges:
            self.queue.extend(self.edges[self.next])
        if self.wakers:
            pysim._run_wakers(self.wakers, self.curr, self.next)
        self.curr = self.next
        return True


class EngineState(pysim._PyEngineState):
    """The values of all signals and memories."""

    def __init__(self):
        super().__init__()
        self.queue = []
        self.places = {}

    def get_signal(self, signal):
        """Return the place of a signal, which is made at the first call."""
        place = self.places.get(id(signal))
        if place is None:
            if signal not in self.signals:
                self.signals[signal] = len(self.slots)
                self.slots.append(SignalState(signal, self.pending, self.queue))
            self.places[id(signal)] = place = self.signals[signal]
        return place

    def add_memory_waker(self, memory, waker):
        """Add a process that runs after each write."""
        queue, process = self.queue, waker.process

        def wake():
            queue.append(process)
            return True

        super().add_memory_waker(memory, wake)


class Engine(pysim.PySimEngine):
    """Amaranth's engine, but for how it finds the processes that have to run."""

    def __init__(self, design):
        super().__init__(design)
        self.circuit = list(self._processes)
        self._processes = set()  # clocks and processes of tests will be added
        self.start()

    def start(self):
        """Queue what runs first."""
        self._state.queue[:] = [process for process in self.circuit if process.is_comb]

    def reset(self):
        """Begin again."""
        super().reset()
        self.start()

    def step_design(self):
        """Run what has to run until nothing changes any more."""
        queue, active = self._state.queue, self._active_triggers
        converged = False
        while not converged:
            changed = set() if self._vcd_writers else None
            for trigger in active:
                trigger.run()
            active.clear()
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            ready = set(queue)
            queue.clear()
            for process in ready:
                process.run()
            converged = self._state.commit(changed)
            for writer in self._vcd_writers:
                self.draw(changed, writer)
            self._delta_cycles += 1

    def draw(self, changed, writer):
        """Write to a file of waves what has changed."""
        now = self._now_plus_deltas(writer.fs_per_delta)
        for change in changed:
            if isinstance(change, SignalState):
                writer.update_signal(now, change.signal)
            else:
                writer.update_memory(now, change.state.memory, change.addr)

    def get_value(self, expr):
        """Return the value of an expression."""
        if type(expr) is Signal:
            return self._state.slots[self._state.get_signal(expr)].curr
        return super().get_value(expr)


def queue_processes(monkeypatch):
    """Let all simulators use the engine with a queue.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    for name in ("comb_waker", "edge_waker", "memory_waker"):
        monkeypatch.setattr(_pyrtl, name, Wake)
    monkeypatch.setattr(pysim, "_PyEngineState", EngineState)
    monkeypatch.setattr(pysim, "PySimEngine", Engine)
