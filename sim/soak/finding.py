# SPDX-License-Identifier: Apache-2.0
"""Which stored tuples a probe matches, by the comparator of an accelerator."""

import numpy as np

from .matching import equal_pairs, limits, pairs_of, pairs_within
from .predicates import CUSTOM

__all__ = ["Finder"]

S = 1


class Finder:
    """Finds the pairs of probes with the tuples of one side's windows.

    Parameters
    ----------
    parameters : dict
        Those of the accelerator, as the manifest has them.
    """

    def __init__(self, parameters):
        self.parameters = parameters

    def matches(self, stored_side, tuples, controls, stored, probes, low, high):
        """Return the pairs of one side's windows: probe and stored tuple, by place; what may miss.

        The places are those in ``stored`` and ``probes``.
        """
        stored_keys, keys = ([key[of] for key in tuples.keys] for of in (stored, probes))
        comparator = self.parameters["comparator"]
        if comparator == "band":
            moments = tuples.moment[probes]
            ranges = self.ranges(stored_side, controls, moments, keys)
            probe, place = pairs_within(stored_keys, ranges, low, high)
            return probe, place, controls.misled(moments)[probe]
        if comparator == "equality":
            probe, place = equal_pairs(stored_keys, keys, low, high)
        else:
            probe, place = self.custom_matches(stored_side, stored_keys, keys, low, high)
        return probe, place, np.zeros(len(probe), bool)

    def ranges(self, stored_side, controls, moments, keys):
        """Return, for each field, the least and the greatest stored value that a probe matches."""
        bounds, number = controls.bounds_at(moments)
        found = []
        for n, (key, field) in enumerate(zip(keys, self.parameters["keys"], strict=True)):
            least, most = zip(*(fields[n] for fields in bounds), strict=True)
            if stored_side == S:  # low <= r - s <= high, so s is r - high to r - low
                least, most = [-by for by in most], [-by for by in least]
            found.append(limits(key, field["bits"], least, most, number))
        return found

    def custom_matches(self, stored_side, stored, keys, low, high):
        """Return the pairs within the spans for which the custom predicate holds."""
        fields = self.parameters["keys"]
        holds = CUSTOM[self.parameters["predicate"].partition(":")[2]]

        def values(columns, at):
            """Return the fields as they are, by name."""
            return {
                field["name"]: column[at].astype(np.int64) - (field["signed"] << field["bits"] - 1)
                for field, column in zip(fields, columns, strict=True)
            }

        def compare(probes, places):
            probe, place = values(keys, probes), values(stored, places)
            return holds(probe, place) if stored_side == S else holds(place, probe)

        return pairs_of(low, high, compare)
