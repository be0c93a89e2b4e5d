# SPDX-License-Identifier: Apache-2.0
"""Fit the cells of an index to the first tuples of a join, before these are sent.

How close together tuples lie is not known when a join is planned. It is when the first batch has
been encoded, and the windows are still empty then: words that change the cells, which empty the
windows, cost nothing but themselves.
"""

from collections.abc import Mapping

import numpy as np

from host.encode import EncodingPlan
from host.exchange.configuration import coordinate_words
from host.hardware.cell_width import fitted_plan
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.window import TimeWindow
from host.tuples.intake import Arrived

__all__ = ["fitted_words"]

#: Fewer tuples say too little, and are joined at once anyway.
LEAST_TUPLES = 1 << 12
#: Tuples that are looked at.
SAMPLE = 1 << 13


def fitted_words(
    manifest: Manifest, plan: EncodingPlan, arrived: Arrived, choice: int
) -> UInt64s | None:
    """Return the control words that fit the cells to a join's first tuples, if there are better.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    plan : EncodingPlan
        Encoding of rows as tuples.
    arrived : Arrived
        The first tuples.
    choice : int
        Choice of the index's hash seeds.
    """
    if manifest.engine != "index" or manifest.comparator != "band" or arrived.count < LEAST_TUPLES:
        return None
    fitted = fitted_plan(
        manifest,
        plan.bounds,
        plan.spreads,
        choice,
        _sample(arrived),
        _stored(manifest, plan, arrived),
    )
    return None if fitted is None else coordinate_words(manifest, fitted)


def _sample(arrived: Arrived) -> Mapping[str, UInt64s]:
    """Return the key fields of some tuples of both sides."""
    step = -(-arrived.count // SAMPLE)
    parts: dict[str, list[UInt64s]] = {}
    for tuples in arrived.sides.values():
        for name, values in tuples.batch.keys.items():
            parts.setdefault(name, []).append(values.block(slice(tuples.begin, tuples.end))[::step])
    return {name: np.concatenate(own) for name, own in parts.items()}


def _stored(manifest: Manifest, plan: EncodingPlan, arrived: Arrived) -> int:
    """Return about how many tuples of a side the window will hold."""
    if not isinstance(plan.window, TimeWindow):
        return int(plan.window.size)
    most = 0.0
    for tuples in arrived.sides.values():
        times = tuples.times
        if len(times):
            passed = max(1, int(times[-1]) - int(times[0]))
            most = max(most, len(times) * int(plan.window.lifespan) / passed)
    return min(int(most), manifest.capacity)
