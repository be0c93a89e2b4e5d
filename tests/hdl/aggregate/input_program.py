# SPDX-License-Identifier: Apache-2.0
"""Input words of an aggregate accelerator, and what it must answer."""

import random

from hdl.aggregate.words import AggregateControl, AggregateKind, aggregate_word
from host.expressions import evaluate

from .window_model import Windows, expected_windows

__all__ = ["InputProgram"]


class InputProgram:
    """Writes input words step by step, and the results that they must have.

    Parameters
    ----------
    operator : WindowedOperator
    parameters : AggregateParameters
        Parameters of the accelerator, of the same operator.

    Attributes
    ----------
    words : list
        Constants of :func:`hdl.aggregate.words.aggregate_word`.
    expected : list
        Results, as :func:`tests.hdl.aggregate.core_program.decoded` returns them.
    windows : Windows
        As they are now. Another pane, size or advance begins with :meth:`clear`.
    """

    def __init__(self, operator, parameters):
        self.operator = operator
        self.parameters = parameters
        self.layout = aggregate_word(parameters)
        self.words, self.expected = [], []
        self.begin(
            Windows(
                pane=operator.pane,
                size=operator.size // operator.pane,
                advance=operator.advance // operator.pane,
            )
        )

    def begin(self, windows):
        """Forget all tuples."""
        self.windows = windows
        self.watermark, self.answered = 0, 0

    def control(self, op, value=0):
        """Add a control word."""
        body = {"control": {"op": op, "value": value}}
        self.words.append(self.layout.const({"kind": AggregateKind.CONTROL, "body": body}))

    def answer(self):
        """Expect the windows that have ended, and then a mark."""
        results = expected_windows(
            self.windows, cores=self.parameters.cores, operator=self.operator,
            until=self.watermark,
        )  # fmt: skip
        self.expected += [result for result in results if result[0] > self.answered]
        self.expected.append("mark")
        self.answered = self.watermark

    def clear(self, **windows):
        """Set fields of windows, and begin with them."""
        for name, value in windows.items():
            self.control(AggregateControl[name.upper()], value)
        self.control(AggregateControl.CLEAR)
        self.answer()
        kept = {name: getattr(self.windows, name) for name in ("pane", "size", "advance")}
        self.begin(Windows(**{**kept, **windows}))

    def reach(self, time):
        """Add a watermark."""
        self.control(AggregateControl.WATERMARK, time)
        self.watermark = max(self.watermark, time)

    def flush(self):
        """Let all windows end, and ask for a mark."""
        self.reach(self.watermark + self.windows.size * self.windows.pane + self.windows.pane)
        self.control(AggregateControl.FLUSH)
        self.answer()

    def add(self, time, **fields):
        """Add a tuple."""
        body = {"tuple": {**fields, "timestamp": time}}
        self.words.append(self.layout.const({"kind": AggregateKind.TUPLE, "body": body}))
        begin = self.watermark // self.windows.pane * self.windows.pane
        self.watermark = max(self.watermark, time)
        if time < begin:
            return  # its pane has ended
        fields["timestamp"] = time
        for key in self.keys_of(fields):
            if key < self.parameters.keys:
                self.windows.tuples.append((time, key, fields))

    def keys_of(self, fields):
        """Return the numbers of the keys of a tuple, each once."""
        keys = set() if self.operator.keys else {0}
        for key in self.operator.keys:
            if key.when is None or evaluate(key.when, fields):
                number, place = 0, 0
                for part, field in zip(key.parts, self.operator.key_fields, strict=True):
                    number |= (int(evaluate(part, fields)) % (1 << field.bits)) << place
                    place += field.bits
                keys.add(number)
        return sorted(keys)

    def random_tuples(self, seed, tuples):
        """Add tuples in bursts, with gaps of every length; some times step back in their pane."""
        generator = random.Random(seed)
        pane, size, time = self.windows.pane, self.windows.size, self.watermark
        for _ in range(tuples):
            if generator.random() < 0.15:
                time += generator.choice([1, 1, 1, 2, 3, size, 4 * size, 61]) * pane
            time += generator.random() < 0.2
            jitter = generator.randrange(1 + time % pane) if generator.random() < 0.2 else 0
            self.add(
                time - jitter,
                **{
                    field.name: generator.choice(
                        [field.range.low, field.range.high,
                         generator.randint(field.range.low, field.range.high)]
                    )
                    for field in self.operator.fields
                },
            )  # fmt: skip
            if generator.random() < 0.05:
                time += generator.randrange(2 * size * pane)
                self.reach(time)
