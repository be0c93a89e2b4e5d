# SPDX-License-Identifier: Apache-2.0
"""Windows by delta: a running value per key, to which panes are added and taken from."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.delay import delayed

from .reductions import delta_reductions, partial_shape, running_shape
from .words import entry_layout

__all__ = ["RunningWindows", "delta_layout", "running_layout"]


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
