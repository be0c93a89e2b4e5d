# SPDX-License-Identifier: Apache-2.0
"""The control words that set an accelerator up for a query."""

from collections.abc import Mapping

import numpy as np

from host.buckets import bucket_plan
from host.exact import UInt64s
from host.manifest import Manifest
from host.ordering import Ordering
from host.predicate import OPEN, Bounds
from host.side import Side
from host.spread import Spread, tightened
from host.window import CountWindow, Window
from host.words import WordCodec

__all__ = ["MARKS", "configuration"]

#: The last so many words are answered with a mark each: PRECISION and CLEAR.
MARKS = 2


def configuration(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    window: Window,
    ordering: Ordering,
    distinct: tuple[bool, bool] = (False, False),
    *,
    spreads: Mapping[str, Spread] | None = None,
    choice: int = 0,
) -> UInt64s:
    """Return the control words for a query.

    Bounds, the parts of the fields in a bucket, whether keys are distinct, windows of both sides,
    precision, CLEAR.

    Parameters
    ----------
    manifest : Manifest
        Of the accelerator.
    bounds : mapping of str to Bounds
        By key field; fields that are absent are open.
    window : CountWindow or TimeWindow
        Of both sides.
    ordering : Ordering
        What the accelerator is set to.
    distinct : tuple of bool
        Whether a probe can match one tuple at most in the window of R, and of S: an index ends its
        search with the first match then.
    spreads : mapping of str to Spread, optional
        What is known of the values, by key field: buckets suit them, and a value that is not as
        told here is an error of the caller.
    choice : int
        Which seeds the hash of an index has, see :func:`host.bucket_hash.seeds`.
    """
    codec = WordCodec(manifest)
    spreads = spreads or {}
    words = []
    for index, key in enumerate(manifest.keys):
        open_low, open_high = -(1 << key.bits), (1 << key.bits) - 1
        term = tightened(bounds.get(key.name, OPEN), spreads.get(key.name))
        low = open_low if term.low is None else max(term.low, open_low)
        high = open_high if term.high is None else min(term.high, open_high)
        if low > open_high:  # clamped, it would admit the greatest difference that there is
            low, high = 0, -1
        words.append(codec.pack_control("BOUND_LOW", index, low))
        words.append(codec.pack_control("BOUND_HIGH", index, high))
    if manifest.engine == "index":
        plan = bucket_plan(manifest, bounds, spreads, choice)
        parts = [part.value(manifest) for part in plan.values()]
        # No field gets bits that another one still has from the last query.
        if manifest.comparator == "band" and len(parts) > 1:
            words += [codec.pack_control("COORDINATE", index, 0) for index in range(len(parts))]
        words += [codec.pack_control("COORDINATE", index, part) for index, part in enumerate(parts)]
        words += [codec.pack_control("DISTINCT", side, int(distinct[side])) for side in Side]
    for side in Side:
        if isinstance(window, CountWindow):
            words.append(codec.pack_control("WINDOW", side, int(window.size)))
        else:
            words.append(codec.pack_control("LIFESPAN", side, int(window.lifespan)))
    words.append(codec.pack_control("PRECISION", 0, ordering.period))
    words.append(codec.pack_control("CLEAR"))
    return np.concatenate(words)
