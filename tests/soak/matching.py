# SPDX-License-Identifier: Apache-2.0
"""Which stored tuples of a span match a probe, for many probes at once.

Keys come as they are ordered: a list of ``uint64`` arrays, one for each field
(:meth:`tests.soak.words.WordLayout.get_ordered`). A *span* is a range ``low .. high - 1`` of places
in the stored tuples.
"""

import numpy as np

from .predicates import CUSTOM

__all__ = ["Finder", "equal_pairs", "limits", "pairs_of", "pairs_within"]

S = 1
#: Comparisons of a block of probes with the places that any of them sees.
BLOCK = 1 << 18
#: Places that a probe sees on average, up to which they are looked at one by one.
NARROW = 24


def spread(low, high):
    """Return, for ranges ``low .. high - 1``, the number of each one's range and its members."""
    counts = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(low)), counts)
    begins = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - begins[owner] + low[owner]


def numbered(keys):
    """Return a number for each key, the same for equal ones."""
    number = None
    for field in keys:
        distinct, values = np.unique(field, return_inverse=True)
        if number is not None:
            _, values = np.unique(number * len(distinct) + values, return_inverse=True)
        number = values
    return number


def equal_pairs(stored, probes, low, high):
    """Return the pairs (probe, place) of equal keys within each probe's span."""
    if is_narrow(low, high):
        return pairs_within(stored, [(key, key) for key in probes], low, high)
    count = len(stored[0])
    both = numbered([np.concatenate(fields) for fields in zip(stored, probes, strict=True)])
    # Sorted by key, then by place: the matches of a probe lie side by side.
    sorted_by = np.argsort(both[:count], kind="stable")
    order = both[:count][sorted_by] * (count + 1) + sorted_by
    first = np.searchsorted(order, both[count:] * (count + 1) + low)
    after = np.searchsorted(order, both[count:] * (count + 1) + high)
    probe, at = spread(first, after)
    return probe, sorted_by[at]


def moved(values, bits, by, number):
    """Return values plus ``by[number]``, cut to ``bits`` bits, and which are below and above them.

    Parameters
    ----------
    values : uint64 array
    bits : int
    by : list of int
        Numbers of any size.
    number : int64 array
        Which of ``by`` belongs to each value.
    """
    top = (1 << bits) - 1
    amount = np.array([min(abs(one), top) for one in by], np.uint64)[number]
    down = np.array([one < 0 for one in by])[number]
    far = np.array([abs(one) > top for one in by])[number]
    below = down & (far | (values < amount))
    above = ~down & (far | (values > np.uint64(top) - amount))
    sums = np.where(down, values - amount, values + amount)
    sums[below], sums[above] = 0, top
    return sums, below, above


def limits(values, bits, least, most, number):
    """Return the least and the greatest number that values plus ``least .. most`` reach.

    Both are cut to what ``bits`` bits hold; a range without such a number comes as 1 to 0.

    Parameters
    ----------
    values : uint64 array
    bits : int
    least, most : lists of int
        Bounds, of any size.
    number : int64 array
        Which of the bounds belong to each value.
    """
    low, _, unreachable = moved(values, bits, least, number)
    high, negative, _ = moved(values, bits, most, number)
    empty = unreachable | negative | (low > high)
    low[empty], high[empty] = 1, 0
    return low, high


def is_narrow(low, high):
    """Tell whether the spans are so short that every place in them may be looked at."""
    return int(np.maximum(high - low, 0).sum()) <= NARROW * len(low)


def pairs_of(low, high, compare):
    """Return the pairs (probe, place) within each probe's span for which ``compare`` holds.

    Parameters
    ----------
    low, high : int64 arrays
        The span of each probe; neither falls from one probe to the next.
    compare : callable
        ``compare(probes, places)`` returns truth values for numbers of probes and places, in arrays
        that are broadcast against each other.
    """
    if is_narrow(low, high):
        probe, place = spread(low, high)
        holds = compare(probe, place)
        return probe[holds], place[holds]
    found, begin = [(np.zeros(0, np.int64), np.zeros(0, np.int64))], 0
    while begin < len(low):
        # As many probes as see twice the places that the first one does.
        first = int(low[begin])
        width = 2 * (int(high[begin]) - first) + 64
        end = int(np.searchsorted(high, first + width, side="right"))
        end = max(begin + 1, min(end, begin + BLOCK // width))
        after = int(high[end - 1])
        matrix = compare(np.arange(begin, end)[:, None], np.arange(first, after)[None])
        probe, place = np.nonzero(matrix)
        probe, place = probe + begin, place + first
        seen = (place >= low[probe]) & (place < high[probe])
        found.append((probe[seen], place[seen]))
        begin = end
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def narrowed(arrays):
    """Return arrays of numbers in the smallest type that holds all of them."""
    most = max(int(array.max(initial=0)) for array in arrays)
    return [array.astype(np.min_scalar_type(most)) for array in arrays]


def pairs_within(stored, ranges, low, high):
    """Return the pairs (probe, place) whose stored fields all lie in the probe's ranges.

    ``ranges`` has, for every field, the least and the greatest value for each probe.
    """
    fields = [narrowed([field, *limits]) for field, limits in zip(stored, ranges, strict=True)]

    def compare(probes, places):
        fits = True
        for field, least, most in fields:
            part = field[places]
            fits = fits & (part >= least[probes]) & (part <= most[probes])
        return fits

    return pairs_of(low, high, compare)


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
