# SPDX-License-Identifier: Apache-2.0
"""The order of results and stars, by several keys."""

import numpy as np

__all__ = ["order_of"]


def order_of(*keys):
    """Return the stable order by the first key, then by the second one, and so on.

    Parameters
    ----------
    keys : int64 arrays
        Of numbers that are not negative.
    """
    if not len(keys[0]):
        return np.zeros(0, np.int64)
    together, limit = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        size = int(key.max()) + 1
        limit *= size
        if limit >= 1 << 63:  # too much for one number
            return np.lexsort(keys[::-1])
        together = together * size + key
    return np.argsort(together, kind="stable")
