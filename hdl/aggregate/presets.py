# SPDX-License-Identifier: Apache-2.0
"""Named parameters of aggregate accelerators."""

from hdl.key_field import KeyField
from hdl.windowed.description import KeyRule, OperatorDescription, OutputRule, ReductionRule

from .aggregate_parameters import AggregateParameters

__all__ = ["AGGREGATE_PRESETS"]


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
