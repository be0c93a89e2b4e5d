# SPDX-License-Identifier: Apache-2.0
"""Any input word at all, also such as no host sends, and what it means in plain Python."""

from dataclasses import dataclass

from amaranth import *
from amaranth.sim import Simulator

from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import (
    Control,
    InputKind,
    bounds_layout,
    control_layout,
    input_word,
    limits_layout,
)
from tests.hdl.input_words import integer

__all__ = ["SHAPES", "AnyWord", "any_words", "executed", "outcomes"]

THREE = tuple(KeyField(name=f"k{n}", bits=n + 1, signed=n != 1) for n in range(3))

#: Accelerators that execute different operations, with fields of 1, 2 and 3 bits and more.
SHAPES = {
    "scan": JoinParameters.of(keys=THREE[:1], timestamp_bits=3, probe_bits=2, probes=3),
    "three": JoinParameters.of(cores=3, sub_window=5, keys=THREE, probe_bits=0),
    "short times": JoinParameters.of(keys=THREE[1:], timestamp_bits=1, probes=16),
    "index": JoinParameters.of(
        cores=1, sub_window=9, keys=THREE, timestamp_bits=4, engine="index", tuples_per_word=2
    ),
    "equality": JoinParameters.of(keys=THREE, comparator="equality", engine="index"),
    "digest": JoinParameters.of(
        cores=1, sub_window=1, keys=THREE[1:], timestamp_bits=2, comparator="equality",
        digest_bits=3,
    ),
    "band digest": JoinParameters.of(cores=2, keys=THREE[:2], digest_bits=5),
    "rounds": JoinParameters.of(
        cores=1, sub_window=9, keys=THREE[:1], probe_bits=2, lanes=2, probes=3, rounds=True,
    ),
    "gates": JoinParameters.of(cores=3, keys=THREE[:1], probe_bits=2, failure_cycles=4096),
}  # fmt: skip


def executed(parameters):
    """Operations and how many indices they may have, written down from the architecture."""
    fields, timed = len(parameters.keys), parameters.timestamp_bits > 0
    index = parameters.engine.kind == "index"
    gates = parameters.has_gates
    cells = parameters.predicate.kind == "band" and parameters.engine.digest_bits is not None
    return {
        "CLEAR": 16, "FLUSH": 16, "BOUND_LOW": fields, "BOUND_HIGH": fields, "WINDOW": 2,
        "LIFESPAN": 2 * timed, "PRECISION": 16, "COORDINATE": fields * index,
        "DISTINCT": 2 * index, "CORE": 16, "SEGMENT": 16, "CELL": fields * cells,
        "INNER": 16 * parameters.engine.rounds, **dict.fromkeys(["MASK", "UNMASK"], 16 * gates),
    }  # fmt: skip


@dataclass(frozen=True)
class AnyWord:
    """An input word by its parts as numbers; ``rest`` is what the body has behind them."""

    parameters: JoinParameters
    kind: int
    first: int
    op: int
    index: int
    value: int
    rest: int = 0

    @property
    def bits(self):
        """The word as a number."""
        layout, control = input_word(self.parameters), control_layout(self.parameters)
        value = self.value & ((1 << control["value"].width) - 1)
        body = self.op | self.index << control["index"].offset | value << control["value"].offset
        body |= self.rest << control.size & ((1 << layout["body"].width) - 1)
        bits = self.kind | body << layout["body"].offset
        if self.parameters.engine.tuples_per_word == 2:
            bits |= self.first << layout["first"].offset
        return bits

    @property
    def operation(self):
        """Name of the operation, if this is a control word that has one."""
        known = self.kind == InputKind.CONTROL.value and self.op < len(Control)
        return Control(self.op).name if known else None

    @property
    def held(self):
        """Whether there is a tuple of R, and one of S."""
        both = self.kind == InputKind.BOTH.value and self.parameters.engine.tuples_per_word == 2
        return [self.kind == side or both for side in range(2)]

    @property
    def executed(self):
        """Is it a control word that the accelerator executes?"""
        return self.index < executed(self.parameters).get(self.operation, 0)

    @property
    def legal(self):
        """Does it hold a tuple, or is it executed?"""
        return any(self.held) or self.executed

    @property
    def finish(self):
        """Does it close the groups of both sides?"""
        if self.executed and self.operation in ("MASK", "UNMASK"):
            return 0 <= self.value < self.parameters.cores
        return self.executed and not self.operation.startswith(("BOUND", "CORE"))

    @property
    def bounds(self):
        """The bounds that it sets."""
        ends = {"BOUND_LOW": "low", "BOUND_HIGH": "high"}
        fields = [field.name for field in self.parameters.keys]
        sets = self.operation in ends and self.index < len(fields)
        if not sets or self.parameters.predicate.kind != "band":
            return 0
        layout = bounds_layout(self.parameters)
        return integer(layout, {fields[self.index]: {ends[self.operation]: 1}})

    @property
    def range(self):
        """The least and the greatest value of its operation; ``None`` if any will do."""
        most = {
            "WINDOW": (1, self.parameters.cores * self.parameters.window.sub_window),
            "LIFESPAN": (0, 2**self.parameters.timestamp_bits - 1),
        }
        if not self.parameters.timestamp_bits:
            del most["LIFESPAN"]
        return most.get(self.operation)

    @property
    def limits(self):
        """The ranges that its value exceeds."""
        if not self.range:
            return 0
        least, most = self.range
        flags = {"below": self.value < least, "above": self.value > most}
        return integer(limits_layout(self.parameters), {self.operation: flags})

    @property
    def period(self):
        """The period from star to star that it wants, if it sets one; zero for no stars."""
        if self.operation == "INNER":
            return 1
        longest = 2**self.parameters.engine.probe_bits
        return self.value if 0 <= self.value < longest else longest


def any_words(parameters, generator, number):
    """Random words of all kinds, most of them control words, with values around all limits."""
    width = control_layout(parameters)["value"].width
    least, most = -(1 << width - 1), (1 << width - 1) - 1
    limits = [
        0, parameters.capacity, parameters.engine.probes, 1 << parameters.engine.probe_bits,
        1 << parameters.timestamp_bits, least, most,
    ]  # fmt: skip
    near = [limit + step for limit in limits for step in (-1, 0, 1)]
    values = [value for value in near if least <= value <= most]
    fields = len(parameters.keys)
    return [
        AnyWord(
            parameters,
            kind=generator.choice([0, 1, 2, 2, 2, 3]),
            first=generator.randrange(2),
            op=generator.choice([*range(len(Control)), generator.randrange(16)]),
            index=generator.choice([0, 1, 2, fields - 1, fields, generator.randrange(16)]),
            value=generator.choice([*values, *[generator.randint(least, most)] * 5]),
            rest=generator.getrandbits(64),
        )
        for _ in range(number)
    ]


def outcomes(shape, function, inputs):
    """What a combinational function of one signal says of every input, by name.

    Parameters
    ----------
    shape : shape-like
        Of the input.
    function : callable
        Gets a module and the input; returns values by name.
    inputs : iterable of int
    """
    m = Module()
    given = Signal(shape)
    values = function(m, given)
    outputs = {}
    for name, value in values.items():
        outputs[name] = Signal(Value.cast(value).shape(), name=f"out_{name}")
        m.d.comb += outputs[name].eq(value)
    found = []

    async def bench(ctx):
        for number in inputs:
            ctx.set(Value.cast(given), number)
            found.append({name: ctx.get(output) for name, output in outputs.items()})

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return found
