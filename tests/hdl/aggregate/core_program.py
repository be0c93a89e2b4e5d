# SPDX-License-Identifier: Apache-2.0
"""Words of cores for tuples in the order of time: what an ingress makes of a program."""

import random

from hdl.aggregate.words import CoreKind, ValueKind, core_word, value_result
from host.expressions import evaluate

from .window_model import expected_windows

__all__ = ["CoreProgram", "decoded", "random_stretch"]


class CoreProgram:
    """Writes the words of the cores step by step, and what the cores must answer.

    Parameters
    ----------
    operator : WindowedOperator
    parameters : AggregateParameters
        Parameters of the accelerator, of the same operator.

    Attributes
    ----------
    words : list
        Constants of :func:`hdl.aggregate.words.core_word`.
    expected : list
        Results in the form of :func:`decoded`.
    """

    def __init__(self, operator, parameters):
        self.operator = operator
        self.parameters = parameters
        self.layout = core_word(parameters)
        self.words, self.expected = [], []

    def word(self, kind, **body):
        """Add a word."""
        self.words.append(self.layout.const({"kind": kind, "body": body}))

    def clear(self, windows):
        """Forget everything, and go on with other windows."""
        self.windows = windows
        self.start, self.panes, self.live = 0, 0, 0
        self.word(CoreKind.CLEAR, job={"answers": 1})
        self.expected.append("mark")

    def finish(self):
        """Let all windows end, and ask for a mark."""
        while self.live:
            self.close()
        self.word(CoreKind.MARK, job={"answers": 1})
        self.expected += expected_windows(
            self.windows, cores=self.parameters.cores, operator=self.operator
        )
        self.expected.append("mark")

    def close(self):
        """End the pane."""
        windows = self.windows
        self.start += windows.pane
        behind = self.start // windows.pane - windows.size  # a multiple of the advance at an end
        ends = behind % windows.advance == 0 and self.live > 1
        self.live -= 1
        job = {
            "answers": ends, "boundary": self.start if ends else 0,
            "slot": self.panes % windows.size, "filled": min(self.panes, windows.size),
            "size": windows.size,
        }  # fmt: skip
        self.word(CoreKind.CLOSE, job=job)
        self.panes += 1

    def add(self, time, key, value):
        """Add a tuple, which is not below the ones before; end panes before it."""
        while self.start + self.windows.pane <= time:
            if self.live:
                self.close()
            else:
                self.start = time // self.windows.pane * self.windows.pane
        self.live = self.windows.size + 1
        fields = {"v": value, "item": key, "timestamp": time}
        self.windows.tuples.append((time, key, fields))
        lifted = {rule.name: int(evaluate(rule.value, fields)) for rule in self.operator.reductions}
        core, row = key % self.parameters.cores, key // self.parameters.cores
        target = {"valid": 1, "core": core, "row": row}
        self.word(CoreKind.TUPLE, tuple={"targets": [target], "lifted": lifted})


def random_stretch(program, seed, *, tuples):
    """Add tuples: keys that often repeat, bursts in a pane, gaps of a few and of many panes."""
    generator = random.Random(seed)
    windows, time = program.windows, 0
    for _ in range(tuples):
        if generator.random() < 0.2:
            time += generator.choice([1, 1, 1, 2, 3, windows.size, 5 * windows.size]) * windows.pane
        time += generator.random() < 0.1
        key = generator.choice([0, 1, generator.randrange(program.parameters.keys)])
        program.add(time, key, generator.randrange(-128, 128))


def decoded(parameters, words):
    """Return results as ``(boundary, key, values)``, stars with None, and marks as "mark"."""
    layout, results = value_result(parameters), []
    for bits in words:
        word = layout.from_bits(bits)
        if word.kind == ValueKind.MARK:
            results.append("mark")
        elif word.kind == ValueKind.STAR:
            results.append((word.boundary, None, ()))
        else:
            value = word.body.value
            found = tuple(value.window[rule.name] for rule in parameters.operator.reductions)
            results.append((word.boundary, value.key, found))
    return results
