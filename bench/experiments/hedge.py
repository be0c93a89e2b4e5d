# SPDX-License-Identifier: Apache-2.0
"""The predicate of STRETCH's Q6: trades whose prices have moved as far, in opposite directions.

A trade's normalized distance is ND = (price - average) / average, and two trades match if
``-1.05 <= ND_R / ND_L <= -1 / 1.05``. A ratio of two fields is no band, but the difference of their
logarithms is one, and the sign is an equality: so rows are prepared, and any join core will do.
That the companies differ is no band either, and is left to whoever reads the pairs.
"""

import numpy as np
import pyarrow as pa

from host.query.queries import Term

__all__ = ["TERMS", "trades"]

#: Parts of a natural logarithm's unit, and the band of ratios up to 1.05. Logarithms are
#: rounded to the unit, so a few pairs at the ends of the band are missing, and a few are too many.
PARTS = 1_000
REACH = int(PARTS * np.log(1.05))
#: |log ND| within the reach, and opposite signs.
TERMS = [Term("x", "x", -REACH, REACH), Term("y", "y", 0, 0)]


def trades(times, seed, side):
    """Return trades of companies whose prices are normal around their averages, 1 % wide.

    Parameters
    ----------
    times : array of int64
        When they come.
    seed : int
        Of the random numbers.
    side : int
        0 for left and 1 for right rows, whose sign is turned round.

    Returns
    -------
    pa.Table
        ``t``; ``x``, the logarithm of the distance in units of 1e-6; ``y``, 1 or 2 by its sign.
    """
    distance = np.random.default_rng(seed).normal(0, 10_000, len(times))
    size = np.maximum(np.abs(distance), 1.0)
    rises = (distance > 0) != bool(side)
    return pa.table(
        {
            "t": times,
            "x": np.rint(PARTS * np.log(size)).astype(np.int64),
            "y": np.where(rises, 1, 2),
        }
    )
