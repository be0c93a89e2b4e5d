# SPDX-License-Identifier: Apache-2.0
"""Cases of tuples: properties of keys, sides and windows, recognized in the tuples themselves."""

import numpy as np

from host.reference.arrivals import places

from .collisions import first_looks
from .workloads import BURST, STRIDE

__all__ = ["OF_TUPLES", "always", "timed"]

#: Least number of different keys for which skew and order are recognized.
KEYS = 6


def one_key(manifest, stretch):
    """Return whether all tuples have the same key."""
    return len(np.unique(stretch.rows, axis=0)) == 1


def skewed_keys(manifest, stretch):
    """Return whether one of several keys has a fifth of the tuples, as in a Zipf distribution."""
    _, counts = np.unique(stretch.rows, axis=0, return_counts=True)
    return len(counts) >= KEYS and 5 * counts.max() >= counts.sum()


def sorted_keys(manifest, stretch):
    """Return whether no key is less than the key before it."""
    rows = stretch.rows
    return len(np.unique(rows, axis=0)) >= KEYS and not (rows[1:] < rows[:-1]).any()


def extreme_keys(manifest, stretch):
    """Return whether every field takes its smallest and its largest value."""
    columns = stretch.keys
    return all({key.low, key.high} <= set(columns[key.name].tolist()) for key in manifest.keys)


def strides(manifest, stretch):
    """Return whether the values of every field are multiples of :data:`STRIDE`."""
    columns = [column.astype(np.int64) for column in stretch.keys.values()]
    return all(not (column % STRIDE).any() and len(np.unique(column)) > 1 for column in columns)


def look_alike(manifest, stretch, *, hashed):
    """Return whether all keys, at least three, share one bucket or one digest."""
    looks = first_looks(manifest, stretch.operands, stretch.keys)
    if looks is None or len(np.unique(np.broadcast_to(looks, len(stretch.sides)))) > 1:
        return False
    if manifest.has_grid:
        bit = manifest.index.coordinate.fields["hashed"].offset
        if hashed != any(operand >> bit & 1 for operand in stretch.operands.values()):
            return False
        if not any(stretch.operands.values()):
            return False
    return len(np.unique(stretch.rows, axis=0)) >= 3


def one_side(manifest, stretch):
    """Return whether all tuples belong to one side."""
    return len(np.unique(stretch.sides)) == 1


def burst(manifest, stretch):
    """Return whether the sides change and one of them has :data:`BURST` tuples in a row."""
    changes = np.flatnonzero(np.diff(stretch.sides)) + 1
    return len(changes) > 0 and np.diff([0, *changes, len(stretch.sides)]).max() >= BURST


def full_window(manifest, stretch):
    """Return whether a probe meets as many tuples as the cores can hold."""
    return any(
        stretch.windows[side] == ("WINDOW", manifest.capacity)
        and (stretch.stored[side] + np.cumsum(stretch.sides == side) >= manifest.capacity)[
            stretch.sides != side
        ].any()
        for side in range(2)
    )


def window_leaves(manifest, stretch):
    """Return whether at least four tuples of a side expire at once and leave the window empty."""
    times = places(stretch.times)
    for side, (name, lifespan) in stretch.windows.items():
        own = times[stretch.sides == side]
        if name != "LIFESPAN":
            continue
        for at in np.flatnonzero(np.diff(own) > max(lifespan, 0)):
            if (own[: at + 1] + np.uint64(max(lifespan, 0)) >= own[at]).sum() >= 4:
                return True
    return False


def window_is(name, size=None):
    """Return a function that tests whether a stretch has a window of the given kind and size."""
    return lambda manifest, stretch: any(
        kind == name and size in (None, value) for kind, value in stretch.windows.values()
    )


def timed(manifest):
    """Return whether the accelerator has timestamps."""
    return manifest.timestamp_bits > 0


def hashes(manifest):
    """Return whether different keys can have the same hash or digest."""
    if manifest.index is not None:
        bits = sum(key.bits for key in manifest.keys)
        return bits >= manifest.index.bucket_bits + 2
    return manifest.digest_bits is not None


def grids(manifest):
    """Return whether the accelerator has an index that can arrange keys in a grid of cells."""
    return manifest.has_grid


def always(manifest):
    """Return True, for cases that every accelerator can meet."""
    return True


#: Cases of a stretch: whether an accelerator can meet the case, and whether a stretch meets it.
OF_TUPLES = {
    "one hot key": (always, one_key),
    "skewed keys": (always, skewed_keys),
    "sorted keys": (always, sorted_keys),
    "extremes of all fields": (always, extreme_keys),
    f"keys in strides of {STRIDE}": (always, strides),
    "keys of one hash or digest": (hashes, lambda *of: look_alike(*of, hashed=True)),
    "keys of one cell of a grid": (grids, lambda *of: look_alike(*of, hashed=False)),
    "one side only": (always, one_side),
    f"a burst of {BURST}": (always, burst),
    "a probe of a full window": (always, full_window),
    "a window of one": (always, window_is("WINDOW", 1)),
    "a window by time": (timed, window_is("LIFESPAN")),
    "a whole window expires": (timed, window_leaves),
    "a star for each probe": (always, lambda _, stretch: stretch.period == 1),
    "a star for each group": (
        lambda manifest: manifest.probes > 1,
        lambda manifest, stretch: stretch.period == manifest.probes,
    ),
    "stars rarer than groups": (
        lambda manifest: manifest.probes < 1 << manifest.probe_bits,
        lambda manifest, stretch: stretch.period > manifest.probes,
    ),
    **{
        f"rounds of {size}": (
            lambda manifest: "INNER" in manifest.operations,
            lambda _, stretch, size=size: stretch.rounds == size,
        )
        for size in (1, 2)
    },
    "no stars but the last": (always, lambda _, stretch: stretch.period == 0),
}
