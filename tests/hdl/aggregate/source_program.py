# SPDX-License-Identifier: Apache-2.0
"""Input words of several sources of an aggregate, and what it must answer."""

import random

from hdl.aggregate.words import AggregateControl

from .aggregate_words import control_word, tuple_word
from .input_program import InputProgram

__all__ = ["SourceProgram"]


class SourceProgram:
    """Writes the words of several sources, whose tuples are one stream in the order of time.

    Parameters
    ----------
    operator, parameters
        As of :class:`~tests.hdl.aggregate.input_program.InputProgram`.
    sources : int
    seed : int or str

    Attributes
    ----------
    sent : list of list of int
        Words of each source.
    merged : InputProgram
        What the tuples and control words amount to; its ``expected`` results are those of all.
    late : set of int
        Sources that have sent a tuple below what had been reached since CLEAR.
    """

    def __init__(self, operator, parameters, *, sources, seed):
        self.random = random.Random(seed)
        self.merged = InputProgram(operator, parameters)
        self.sent = [[] for _ in range(sources)]
        self.late = set()

    def fields(self):
        """Return values for the operator's fields."""
        return {
            field.name: self.random.randint(field.range.low, field.range.high)
            for field in self.merged.operator.fields
        }

    def epoch(self, *, tuples, lateness=0.0):
        """Let each source send tuples and watermarks, from what has been reached on.

        Every source is sorted, but for a tuple that is late with the given probability.
        """
        parameters = self.merged.parameters
        pane, size = self.merged.windows.pane, self.merged.windows.size
        begin, items = self.merged.watermark, []
        for source, sent in enumerate(self.sent):
            place = 0  # the latest time of the source in this epoch
            time = begin
            for _ in range(self.random.randrange(tuples // 2, tuples + 1)):
                time += self.random.choice([0, 0, 1, 1, 2, pane, size * pane, 9 * size * pane])
                late = self.random.random() < lateness
                own = self.random.randrange(time + 1) if late else time
                if self.random.random() < 0.25:
                    sent.append(control_word(parameters, AggregateControl.WATERMARK, own))
                    place = max(place, own)
                    items.append((place, source, None, None))
                else:
                    fields = self.fields()
                    sent.append(tuple_word(parameters, own, **fields))
                    place = max(place, own)
                    items.append((place, source, own, fields))
        for place, source, own, fields in sorted(items, key=lambda item: item[:2]):
            if own is not None and own < max(place, self.merged.watermark):
                self.late.add(source)
            self.merged.reach(place)
            if own is not None:
                self.merged.add(own, **fields)

    def flush(self):
        """Let all windows end, and ask for a mark."""
        self.barrier(lambda to: to.flush())

    def mark(self):
        """Ask for a mark; windows stay open."""

        def write(to):
            to.control(AggregateControl.FLUSH)
            to.answer()

        self.barrier(write)

    def clear(self, **windows):
        """Forget all tuples, and begin with other windows."""
        self.barrier(lambda to: to.clear(**windows))

    def barrier(self, write):
        """Let all sources bring the same words."""
        before = len(self.merged.words)
        write(self.merged)
        words = [word.as_value().value for word in self.merged.words[before:]]
        for sent in self.sent:
            sent += words
