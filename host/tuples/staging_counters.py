# SPDX-License-Identifier: Apache-2.0
"""Counters of the staging of Arrow batches into a device's input words."""

from dataclasses import dataclass

__all__ = ["StagingCounters"]


@dataclass
class StagingCounters:
    """Counts of batches, rows and bytes; each execution of an accelerator has its own.

    Attributes
    ----------
    batches, rows : int
        Arrow batches taken from the inputs, and their rows.
    tuples : int
        Rows that were encoded as tuples; rows that cannot match may be left out.
    halo_tuples : int
        Number of these tuples that come from halo rows, which are the first ones.
    staged_bytes : int
        Bytes written into input words, each of them once.
    copied_batches, copied_bytes : int
        Batches of which a column was copied on the way, and the bytes copied. A column is copied
        if it does not consist of integers (text, booleans), holds nulls, or shares its batch with
        the other side. Small batches are copied when they are joined.
    moved_words : int
        Words that were moved to the front of a new staging area because the old one was full.
    """

    batches: int = 0
    rows: int = 0
    tuples: int = 0
    halo_tuples: int = 0
    staged_bytes: int = 0
    copied_batches: int = 0
    copied_bytes: int = 0
    moved_words: int = 0
