# SPDX-License-Identifier: Apache-2.0
"""A scenario: the words that an accelerator receives, and how far its answer is determined."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Scenario"]


@dataclass(frozen=True)
class Scenario:
    """Input words, and how far the answer to them is determined.

    Parameters
    ----------
    words : array of uint64
        One word per row. The last word is answered by a mark.
    marks : int
        Number of marks in the answer.
    free : bool
        Whether the results between two stars may come in any order.
    faulty : bool
        Whether a window may outgrow the cores, or timestamps may decrease. Stars and marks then
        report the error, and the pairs are not reliable.
    """

    words: np.ndarray
    marks: int
    free: bool = False
    faulty: bool = False
