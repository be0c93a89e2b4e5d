# SPDX-License-Identifier: Apache-2.0
"""A scenario: the words that an accelerator is sent, and what is known of its answer."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Scenario"]


@dataclass(frozen=True)
class Scenario:
    """Input words, and how far the answer is fixed.

    Parameters
    ----------
    words : array of uint64
        One row a word; the last one is answered by a mark.
    marks : int
        How many marks come.
    free : bool
        Whether the results between two stars may come in any order.
    faulty : bool
        Whether a window may outgrow the cores, or time go back: then stars and marks say so, and
        nobody may rely on the pairs.
    """

    words: np.ndarray
    marks: int
    free: bool = False
    faulty: bool = False
