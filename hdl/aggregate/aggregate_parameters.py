# SPDX-License-Identifier: Apache-2.0
"""Parameters of an accelerator of aggregates, and the named ones."""

from dataclasses import asdict, dataclass

from amaranth import *
from amaranth.utils import ceil_log2

from hdl.expressions import lower
from hdl.parameters import KeyField, Parameters
from hdl.parts import require, require_known
from hdl.windowed.description import KeyRule, OperatorDescription, OutputRule, ReductionRule

__all__ = [
    "AGGREGATE_PRESETS",
    "AggregateParameters",
    "combined",
    "delta_reductions",
    "exceeds",
    "pane_reductions",
    "partial_bits",
]

#: What a reduction by delta does to two states, and to take one out of the other.
ADDS, TAKES = "a + b", "a - b"


def is_additive(rule):
    """Return whether a reduction is a sum, from which a pane can be taken out again."""
    return (rule.combine, rule.inverse) == (ADDS, TAKES)


def delta_reductions(parameters):
    """Return the reductions whose windows move by delta: a pane is added, another taken out."""
    return [rule for rule in parameters.operator.reductions if is_additive(rule)]


def pane_reductions(parameters):
    """Return the reductions that are combined from all panes of a window, for every window."""
    return [rule for rule in parameters.operator.reductions if not is_additive(rule)]


def partial_bits(parameters, rule):
    """Return the bits of a reduction of one pane: those of its state, or fewer if it is a sum."""
    if parameters.pane_bits is None or not is_additive(rule):
        return rule.bits
    return min(rule.bits, parameters.pane_bits)


def shape_of(bits, rule):
    """Return the shape of a number of a reduction."""
    return signed(bits) if rule.signed else unsigned(bits)


def partial_shape(parameters, rule):
    """Return the shape of a reduction of one pane."""
    return shape_of(partial_bits(parameters, rule), rule)


def running_shape(parameters, rule):
    """Return the shape of a sum over the panes of a window, which always fits."""
    return shape_of(partial_bits(parameters, rule) + ceil_log2(parameters.panes), rule)


def window_shape(parameters, rule):
    """Return the shape of a reduction of a window, as a result holds it."""
    if not is_additive(rule):
        return partial_shape(parameters, rule)
    return shape_of(min(rule.bits, running_shape(parameters, rule).width), rule)


def lifted_value(rule, fields):
    """Return what a tuple contributes to a reduction, which always fits its state.

    Parameters
    ----------
    rule : ReductionRule
    fields : mapping of str to value-like
        Fields of the tuple, and its ``timestamp``.
    """
    return Value.cast(lower(rule.value, fields))


def combined(rule, a, b):
    """Return the reduction of two disjoint sets of tuples, as wide as it may become."""
    return Value.cast(lower(rule.combine, {"a": a, "b": b}))


def exceeds(value, shape):
    """Return whether ``value`` is outside of ``shape``."""
    if not shape.signed:
        above = value[shape.width :].any() if len(value) > shape.width else Const(0, 1)
        negative = value[-1] if value.shape().signed else Const(0, 1)
        return above | negative
    if not value.shape().signed:
        return value[shape.width - 1 :].any() if len(value) >= shape.width else Const(0, 1)
    if len(value) <= shape.width:
        return Const(0, 1)
    above = value[shape.width - 1 :]
    return above.any() & ~above.all()


#: Parts of a description that an aggregate lacks, so its document does too.
ABSENT = (("right_fields", ()), ("in_turns", False))
#: Least values of parameters that are integers.
LEAST = {"cores": 1, "timestamp_bits": 1, "fan_out": 2, "fan_in": 2}


def document(part):
    """Return the document of an operator from its parts, without those an aggregate lacks."""
    if isinstance(part, dict):
        return {
            name: document(value)
            for name, value in part.items()
            if value is not None and (name, value) not in ABSENT
        }
    return [document(value) for value in part] if isinstance(part, tuple) else part


@dataclass(frozen=True, kw_only=True)
class AggregateParameters(Parameters):
    """What is fixed when an aggregate accelerator is generated.

    Control words can set another size and advance of windows than the operator's.

    Parameters
    ----------
    operator : OperatorDescription
        What is computed, an aggregate.
    cores : int
        Number of cores. Key ``k`` belongs to core ``k % cores``.
    keys : int or None
        Capacity of keys. The number of a key is that of the bits of its parts, the first part
        lowest. A tuple with a key from ``keys`` on is an overflow. By default there is room for all
        keys that the operator can have.
    panes : int or None
        Largest number of panes in a window; by default those of the operator.
    pane_bits : int or None
        Width of a sum over one pane, if that of a window is wider than one pane needs; a sum that
        needs more is an overflow. By default, that of a window.
    timestamp_bits : int
        Width of the unsigned timestamp.
    fan_out, fan_in : int
        Arity of the distribution tree and of the gathering tree.
    """

    operator: OperatorDescription
    cores: int = 1
    keys: int | None = None
    panes: int | None = None
    pane_bits: int | None = None
    timestamp_bits: int = 32
    fan_out: int = 4
    fan_in: int = 4

    def __post_init__(self):
        require(
            self.operator.kind == "aggregate",
            f"Operator {self.operator.name!r} must be an aggregate, with reductions; it is a "
            f"{self.operator.kind}",
        )
        for name, least in LEAST.items():
            value = getattr(self, name)
            require(
                isinstance(value, int) and value >= least,
                f"Parameter {name!r} must be an integer of at least {least}, not {value!r}",
            )
        bits = self.operator.key_bits
        if self.keys is None:
            object.__setattr__(self, "keys", 1 << bits)
        if self.panes is None:
            object.__setattr__(self, "panes", self.operator.panes)
        require(
            self.cores <= self.keys <= 1 << bits,
            f"Parameter 'keys' must be from {self.cores}, one for each core, to {1 << bits}, what "
            f"the {bits} bits of a key can name, not {self.keys!r}",
        )
        require(
            self.panes >= self.operator.panes,
            f"Parameter 'panes' must be at least {self.operator.panes}, the panes of a window of "
            f"operator {self.operator.name!r}, not {self.panes!r}",
        )
        widest = max((rule.bits for rule in delta_reductions(self)), default=0)
        require(
            self.pane_bits is None or 1 <= self.pane_bits <= widest,
            f"Parameter 'pane_bits' must be from 1 to {widest}, the width of the widest sum, not "
            f"{self.pane_bits!r}",
        )

    def require_join(self, what, remedy):
        """Raise :exc:`ValueError`, because ``what`` is for joins."""
        raise ValueError(f"{what}, and operator {self.operator.name!r} is an aggregate: {remedy}")

    @property
    def computes(self):
        """What a report says of it."""
        return {"aggregate": f"{self.operator.name}, {self.keys} keys"}

    @property
    def key_bits(self):
        """Bits of the number of a key."""
        return max(1, self.operator.key_bits)

    @property
    def tuple_keys(self):
        """Number of keys of a tuple, at the most; without any, all tuples share one."""
        return max(1, len(self.operator.keys))

    @property
    def core_keys(self):
        """Number of keys of a core, at the most."""
        return -(-self.keys // self.cores)

    @property
    def rows(self):
        """Rows of a core's memories, a power of two of at least two; each key has one."""
        return 1 << max(1, ceil_log2(self.core_keys))

    @property
    def slots(self):
        """Places for panes in a core's memories, a power of two."""
        return 1 << ceil_log2(self.panes)

    @classmethod
    def of(cls, **words):
        """Return the parameters that ``words`` describe; the operator may be its document."""
        require_known(words, cls.__dataclass_fields__)
        operator = words["operator"]
        if isinstance(operator, dict):
            operator = OperatorDescription.from_dict(operator)
        return cls(**{**words, "operator": operator})

    def words(self):
        """Return the parameters as JSON-compatible values; the operator as its document."""
        return {**asdict(self), "operator": document(asdict(self.operator))}


def sum_by_key(*, key_bits, value_bits, panes):
    """Return the description of a sum by key over a sliding window of so many panes."""
    total = ReductionRule(
        name="total",
        function="sum",
        value="value",
        combine="a + b",
        inverse="a - b",
        bits=32,
        signed=False,
    )
    key, value = (
        KeyField(name=name, bits=bits, signed=False)
        for name, bits in (("key", key_bits), ("value", value_bits))
    )
    return OperatorDescription(
        name="sum_by_key",
        kind="aggregate",
        size=panes,
        advance=1,
        pane=1,
        instances="single",
        slides_by="delta",
        fields=(key, value),
        keys=(KeyRule(parts=("key",)),),
        key_fields=(key,),
        reductions=(total,),
        outputs=(OutputRule(name="total", value="total"),),
    )


#: Named configurations, `python -m hdl generate --preset NAME`.
AGGREGATE_PRESETS = {
    # Small enough for a first look at the Verilog.
    "tiny-aggregate": AggregateParameters(
        operator=sum_by_key(key_bits=4, value_bits=8, panes=4), cores=2, timestamp_bits=16
    ),
    # As many keys and panes as fit an LFE5U-85F together: 2^18 partial sums of 10 bits.
    "ecp5-aggregate": AggregateParameters(
        operator=sum_by_key(key_bits=14, value_bits=8, panes=16), cores=4, pane_bits=10, fan_in=2
    ),
    # The same for a simulation, where memory costs nothing: sums as wide as the operator's, and one
    # core, because a second one makes nothing faster.
    "aggregate": AggregateParameters(
        operator=sum_by_key(key_bits=14, value_bits=16, panes=16), cores=1
    ),
}
