# SPDX-License-Identifier: Apache-2.0
"""What the results of a join aggregate have to be: each tuple of R has one, and S has none."""

import numpy as np

from .model import Model
from .results import STAR, Results, pack_value

__all__ = ["AggregateModel"]

R, S = 0, 1


class AggregateModel(Model):
    """The join aggregate that a manifest describes.

    Parameters
    ----------
    manifest : dict
        As read from ``manifest.json``.
    """

    def __init__(self, manifest):
        super().__init__(manifest)
        self.fields = manifest["result_word"]["fields"]
        self.values = None

    def read(self, words):
        """Return what :meth:`Model.read` does; keep the value of each tuple that is left."""
        tuples, controls, faults = super().read(words)
        bits = self.layout.fields["value"]["bits"]
        value = self.layout.get(words[tuples.moment // 2], "value").astype(np.int64)
        self.values = value - (value >> bits - 1 << bits)
        return tuples, controls, faults

    def pairs_against(self, stored_side, tuples, controls, faults, turns, masks):
        """Return the pairs of the probes of R; tuples of R are not stored, and never too many."""
        if stored_side == S:
            return super().pairs_against(stored_side, tuples, controls, faults, turns, masks)
        none = np.zeros(0, np.int64)
        return none, none, none, none > 0, none, np.zeros((3, 0), np.int64)

    def grouped(self, tuples, turns, masks, stars, sizes, pairs, spans):
        """Return a value for each tuple of R, in the place of its pairs."""
        probe, _, _, _, stored = pairs
        probes = np.flatnonzero(tuples.side == R)
        own = np.searchsorted(probes, probe)
        value = self.values[stored]
        half = 1 << self.layout.fields["value"]["bits"] - 1
        count = np.bincount(own, minlength=len(probes))
        total = np.zeros(len(probes), np.int64)
        least, most = np.full(len(probes), half - 1), np.full(len(probes), -half)
        np.add.at(total, own, value)
        np.minimum.at(least, own, value)
        np.maximum.at(most, own, value)
        parts = {"count": count, "total": total, "least": least, "most": most}
        bits = [self.fields[f"value.{name}"]["bits"] for name in parts]
        codes = pack_value(stars.probe[probes], zip(parts.values(), bits, strict=True))
        return stars.of[probes], np.full(len(probes), R), codes, np.zeros(len(probes), bool)

    def in_order(self, tuples, controls, faults, stars, body):
        """Return all results in their order, without the stars of S."""
        results, loose = super().in_order(tuples, controls, faults, stars, body)
        kept = (results.kind != STAR) | (results.side == R)
        return Results(results.side[kept], results.code[kept]), loose[kept]

    def free_orders(self, controls):
        """Return for every mark that the order before it is fixed, whatever PRECISION says."""
        return np.zeros_like(super().free_orders(controls))
