# SPDX-License-Identifier: Apache-2.0
"""The words of a scenario for a shell with inputs of their own for each side."""

from dataclasses import replace

import numpy as np

from host.protocol.bit_fields import unpack_field

__all__ = ["merged_inputs"]


def merged_inputs(manifest, scenario, *, sides=(0, 1), seed=0):
    """Return what several inputs bring, and the scenario that their merge gives.

    Each input brings tuples of its side, and all control words. Where a side has several inputs,
    each of its tuples comes at a random one of them. The merge puts the tuples between two control
    words in the order of time, and on a tie in the order of the inputs.

    Parameters
    ----------
    manifest : Manifest
        Manifest of an accelerator with timestamps and one tuple in a word.
    scenario : Scenario
        Scenario whose tuples are in the order of time, or nearly so.
    sides : sequence of int
        Side of each input.
    seed : int
        Seed of the choice among the inputs of a side.

    Returns
    -------
    merged : Scenario
    inputs : list of array of uint64
        Words of each input, one per row.
    """
    words, sides = scenario.words, np.array(sides)
    kinds = unpack_field(words, manifest.input_word["kind"]).astype(np.int64)
    times = unpack_field(words, manifest.input_word["timestamp"]).astype(np.int64)
    is_control = kinds == manifest.input_kinds["CONTROL"]
    random = np.random.default_rng(seed)
    sources = np.full(len(words), -1)
    for side in np.unique(sides):
        own = np.flatnonzero(kinds == side)
        sources[own] = random.choice(np.flatnonzero(sides == side), len(own))
    epochs = 2 * np.cumsum(is_control) - is_control  # control words have odd numbers
    place = np.where(is_control, 0, times)
    order = np.lexsort((sources, place, epochs))
    merged = replace(scenario, words=np.ascontiguousarray(words[order]))
    inputs = [
        np.ascontiguousarray(merged.words[(sources[order] == source) | is_control[order]])
        for source in range(len(sides))
    ]
    return merged, inputs
