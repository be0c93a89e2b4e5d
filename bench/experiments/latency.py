# SPDX-License-Identifier: Apache-2.0
"""Visiting and processing latency, from the cycles in which tuples arrived and results left."""

import numpy as np

from host.protocol.bit_fields import unpack_field

__all__ = ["latencies"]


def latencies(codec, manifest, traffic, arrived, period, interval):
    """Return mean, median and greatest latencies in cycles, and how many pairs they are of.

    The visiting latency is from the arrival of the later tuple of a pair to the pair. The
    processing latency is from the arrival of a tuple to its star; a chain of cores has no stars,
    so its processing latency is unknown.

    Parameters
    ----------
    codec : WordCodec
        Codec of the accelerator.
    manifest : Manifest
        Its manifest.
    traffic : Traffic
        All results since CLEAR, with their cycles.
    arrived : array of int64
        Cycle of each tuple since CLEAR; sides alternate, and R is first.
    period : int
        Probes of a side per star; without stars, at 0, no result tells which tuple it is of.
    interval : tuple of int
        First and last cycle of the results that count.
    """
    words, produced = np.concatenate(traffic.results), np.concatenate(traffic.produced)
    fields = codec.unpack_results(words)
    inside = (produced >= interval[0]) & (produced <= interval[1])
    sides = [arrived[own::2] for own in range(2)]
    if manifest.chain is not None:
        at = np.flatnonzero((fields.kind == codec.pair) & inside)
        r, s = (unpack_field(words[at], manifest.result_word[name]) for name in "rs")
        return summary("visiting", produced[at] - np.maximum(sides[0][r], sides[1][s]))
    if not period:
        return summary("visiting", np.zeros(0)) | summary("processing", np.zeros(0))
    visiting, processing = [], []
    for own in range(2):
        of_side = (fields.side == own) & (fields.kind != codec.mark)
        of_side &= ~fields.inner  # the star of a round leaves its probe open
        is_star = fields.kind[of_side] == codec.star
        stars_before = np.cumsum(is_star) - is_star
        stamp, counts = produced[of_side], inside[of_side]
        probe = stars_before * period + fields.probe[of_side]
        at = ~is_star & counts
        visiting.append(stamp[at] - sides[own][probe[at]])
        at = is_star & counts
        probes = stars_before[at][:, None] * period + np.arange(period)
        processing.append((stamp[at][:, None] - sides[own][probes]).ravel())
    return summary("visiting", np.concatenate(visiting)) | summary(
        "processing", np.concatenate(processing)
    )


def summary(name, cycles):
    """Return mean, median, greatest and number of some latencies."""
    if not len(cycles):
        return {name: None, f"{name}_count": 0}
    return {
        name: float(cycles.mean()),
        f"{name}_median": float(np.median(cycles)),
        f"{name}_greatest": int(cycles.max()),
        f"{name}_count": len(cycles),
    }
