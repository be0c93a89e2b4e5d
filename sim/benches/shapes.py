# SPDX-License-Identifier: Apache-2.0
"""The accelerators of the cocotb benches: every engine, comparator, shape of a preset."""

from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS

__all__ = ["SHAPES", "near"]

X8 = (KeyField(name="x", bits=8),)
XY = (*X8, KeyField(name="y", bits=11, signed=False))
#: Rows of a sub-window. The presets' sub-windows would take thousands of tuples to fill.
ROWS = 3


def near(r, s):
    """Custom predicate: x differs by at most 3, or y is equal."""
    return ((r.x - s.x) * (r.x - s.x) <= 9) | (r.y == s.y)


def small(parameters):
    """Return a preset with windows that a few tuples fill, and otherwise unchanged parameters."""
    if parameters.engine.kind == "index":
        return parameters.with_(sub_window=48, bucket_bits=6)
    return parameters.with_(sub_window=ROWS * parameters.engine.lanes)


#: The accelerators that `python -m sim bench` runs by default.
SHAPES = {
    "one core": JoinParameters.of(cores=1, sub_window=16, keys=X8, timestamp_bits=16),
    "three cores": JoinParameters.of(
        cores=3, sub_window=8, keys=(*X8, KeyField(name="y", bits=64, signed=False)), fan_in=2,
        timestamp_bits=12, lanes=2, probes=2, fan_out=2,
    ),
    "seven cores": JoinParameters.of(
        cores=7, sub_window=5, keys=X8, timestamp_bits=16, fan_in=3, fan_out=2, probe_bits=4,
    ),
    "equality": JoinParameters.of(
        cores=2, sub_window=15, keys=XY, timestamp_bits=16, comparator="equality", lanes=2,
        probes=3,
    ),
    "digests": JoinParameters.of(
        cores=2, sub_window=15, keys=XY, timestamp_bits=16, comparator="equality", digest_bits=5,
        lanes=3, probes=4,
    ),
    "digests of a band": JoinParameters.of(
        cores=2, sub_window=15, keys=XY, timestamp_bits=16, digest_bits=7, lanes=3, probes=4,
    ),
    "a custom predicate": JoinParameters.of(
        cores=2, sub_window=8, keys=XY, timestamp_bits=16, comparator="custom",
        predicate="sim.benches.shapes:near", probes=2,
    ),
    "two ports": JoinParameters.of(
        cores=3, sub_window=8, keys=XY, timestamp_bits=16, probes=2, fan_in=2, result_streams=2,
    ),
    "two ports of two in a word": JoinParameters.of(
        cores=2, sub_window=24, keys=XY, timestamp_bits=16, probes=3, engine="index",
        comparator="equality", tuples_per_word=2, result_streams=2,
    ),
    "rounds": JoinParameters.of(
        cores=3, sub_window=8, keys=XY, timestamp_bits=16, probes=2, fan_in=2, rounds=True,
    ),
    "rounds of digests": JoinParameters.of(
        cores=5, sub_window=15, keys=XY, timestamp_bits=16, comparator="equality", digest_bits=5,
        lanes=4, fan_in=3, rounds=True,
    ),
    "an index": JoinParameters.of(
        cores=1, sub_window=48, keys=X8, timestamp_bits=16, probes=4, engine="index",
    ),
    "three indexes": JoinParameters.of(
        cores=3, sub_window=16, keys=XY, fan_in=2, timestamp_bits=12, probes=2, engine="index",
        bucket_bits=3,
    ),
    "an index of equality": JoinParameters.of(
        cores=2, sub_window=24, keys=XY, timestamp_bits=16, probes=3, engine="index",
        comparator="equality", tuples_per_word=2,
    ),
    "a join aggregate": JoinParameters.of(
        cores=3, sub_window=8, keys=XY, timestamp_bits=16, probes=2, lanes=2, fan_in=2,
        value_bits=12,
    ),
    **{
        name: small(PRESETS[name])
        for name in (
            "demo", "paper", "ecp5-equality", "ecp5-band", "ecp5-band-digest", "ecp5-index",
            "ecp5-default",
        )
    },
}  # fmt: skip
