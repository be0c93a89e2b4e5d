# SPDX-License-Identifier: Apache-2.0
"""Which pairs that may be missing are missing, where several pairs look alike."""

import numpy as np
import pytest

from tests.soak.checking import found_of
from tests.soak.results import STAR, Results, pack, pack_pair


def results(rows):
    """Return pairs of R's probe 0 with these rows, and a star behind those of each group."""
    codes = []
    for group in rows:
        codes += [pack_pair(0, row, 0, 0) for row in group]
        codes.append(pack(STAR, 0, 0, 0))
    return Results(np.zeros(len(codes), np.int64), np.array(codes))


@pytest.mark.parametrize(
    ("expected", "loose", "actual", "kept"),
    [
        # In one group, row 3 is met twice: the number of a probe begins again without stars.
        ([[3, 3, 5]], {1, 2}, [[3]], [[3]]),
        ([[3, 3, 5]], {0, 2}, [[3]], [[3]]),
        ([[3, 3, 5]], {1, 2}, [[3, 3]], [[3, 3]]),
        ([[3, 3, 5]], {0, 2}, [[3, 5]], [[3, 5]]),
        ([[3, 3, 5]], {1}, [[5]], [[3, 5]]),  # one pair of row 3 must be there
        ([[3], [3, 5]], {2, 3}, [[3], [5]], [[3], [5]]),
        ([[3], [3, 5]], {0}, [[], [3, 5]], [[], [3, 5]]),
    ],
)
def test_a_pair_that_must_be_there_is_found_before_one_that_may_be_missing(
    expected, loose, actual, kept
):
    whole, wanted = results(expected), results(kept)
    flags = np.isin(np.arange(len(whole)), list(loose))
    found = found_of(whole, flags, results(actual))
    assert found.code.tolist() == wanted.code.tolist()
