# SPDX-License-Identifier: Apache-2.0
"""The predicate of STRETCH's Q6: trades whose prices have moved as far, in opposite directions.

A trade's normalized distance is ND = (price - average) / average, and trades of two companies match
if ``-1.05 <= ND_R / ND_L <= -1 / 1.05``. Rows hold the distance as its sign and its size, so the
ratio is compared without a division, exactly.
"""

import numpy as np
import pyarrow as pa

__all__ = ["BITS", "WHERE", "trades"]

#: A hedge, as a condition on two rows.
WHERE = (
    "l.rises != r.rises and 100 * l.size <= 105 * r.size and 100 * r.size <= 105 * l.size "
    "and l.company != r.company"
)
#: Bits of its fields, all of them without a sign.
BITS = {"rises": 1, "size": 17, "company": 6}
COMPANIES = 50
#: A size is in units of 1e-6, so a price is 1 % away from its average on average.
DEVIATION = 10_000


def trades(times, seed):
    """Return trades of companies whose prices are normal around their averages.

    Parameters
    ----------
    times : array of int64
        When they come.
    seed : int
        Of the random numbers.

    Returns
    -------
    pa.Table
        ``t``; ``rises``, whether the price is above its average, as a number; ``size``, how far
        away it is in units of 1e-6, at least 1; ``company``.
    """
    generator = np.random.default_rng(seed)
    distance = np.rint(generator.normal(0, DEVIATION, len(times))).astype(np.int64)
    size = np.clip(np.abs(distance), 1, (1 << BITS["size"]) - 1)
    company = generator.integers(0, COMPANIES, len(times))
    rises = (distance > 0).astype(np.int64)
    return pa.table({"t": times, "rises": rises, "size": size, "company": company})
