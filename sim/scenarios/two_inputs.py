# SPDX-License-Identifier: Apache-2.0
"""The words of a scenario for a shell with an input for each side."""

from dataclasses import replace

import numpy as np

from host.reference.side import Side
from host.words.bit_fields import unpack_field

__all__ = ["two_inputs"]


def two_inputs(manifest, scenario):
    """Return what two inputs bring, and the scenario that their merge gives.

    Each input brings the tuples of its side, and all control words. The merge puts the tuples
    between two control words in the order of time, and R first on a tie.

    Parameters
    ----------
    manifest : Manifest
        Manifest of an accelerator with timestamps and one tuple in a word.
    scenario : Scenario
        Scenario whose tuples are in the order of time, or nearly so.

    Returns
    -------
    merged : Scenario
    inputs : list of array of uint64
        Words of R's input and of S's input, one per row.
    """
    words = scenario.words
    kinds = unpack_field(words, manifest.input_word["kind"]).astype(np.int64)
    times = unpack_field(words, manifest.input_word["timestamp"]).astype(np.int64)
    is_control = kinds == manifest.input_kinds["CONTROL"]
    epochs = 2 * np.cumsum(is_control) - is_control  # control words have odd numbers
    place = np.where(is_control, 0, times)
    order = np.lexsort((kinds, place, epochs))
    merged = replace(scenario, words=np.ascontiguousarray(words[order]))
    inputs = [
        np.ascontiguousarray(merged.words[(kinds[order] == side) | is_control[order]])
        for side in Side
    ]
    return merged, inputs
