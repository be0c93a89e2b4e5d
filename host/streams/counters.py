# SPDX-License-Identifier: Apache-2.0
"""What the way from Arrow batches into a device's input words has cost."""

from dataclasses import dataclass

__all__ = ["StagingCounters"]


@dataclass
class StagingCounters:
    """Counts batches, rows and bytes; an accelerator has one an execution.

    Attributes
    ----------
    batches, rows : int
        Arrow batches taken from the inputs, and the rows in them.
    tuples : int
        Rows of which a tuple has been made; those that cannot match may be left out.
    halo_tuples : int
        … of which so many, the first ones, are of halo rows.
    staged_bytes : int
        Bytes written into input words, each of them once.
    copied_batches, copied_bytes : int
        Batches of which a column was copied on the way, because it is not made of integers (text,
        booleans), holds nulls, or shares its batch with the other side, and small ones that were
        put together; and those copies.
    moved_words : int
        Words that were moved to the front of the staging area, as it was full.
    """

    batches: int = 0
    rows: int = 0
    tuples: int = 0
    halo_tuples: int = 0
    staged_bytes: int = 0
    copied_batches: int = 0
    copied_bytes: int = 0
    moved_words: int = 0
