# SPDX-License-Identifier: Apache-2.0
"""Illegal input words."""

import numpy as np

__all__ = ["illegal_word"]


def illegal_word(manifest, generator):
    """Return an illegal input word as one row: neither a tuple nor an operation of the manifest.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    generator : numpy.random.Generator
        Generator of the bits that do not make the word illegal.
    """
    bits = manifest.input_word.bits
    number = sum(int(generator.integers(0, 2)) << place for place in range(bits))
    unknown_kind = bool(generator.integers(0, 2))

    def put(name, value):
        nonlocal number
        place = manifest.input_word[name]
        number &= ~(((1 << place.bits) - 1) << place.offset)
        number |= value << place.offset

    unknown_kind &= "BOTH" not in manifest.input_kinds  # else kind 3 is legal
    put("kind", 3 if unknown_kind else manifest.input_kinds["CONTROL"])
    if not unknown_kind:
        indices = {code: manifest.indices[name] for name, code in manifest.operations.items()}
        every = [(op, index) for op in range(16) for index in range(16)]
        illegal = [(op, index) for op, index in every if index >= indices.get(op, 0)]
        op, index = illegal[generator.integers(len(illegal))]
        put("control.op", op)
        put("control.index", index)
    row = number.to_bytes(8 * manifest.input_word.columns, "little")
    return np.frombuffer(row, dtype="<u8").reshape(1, -1).copy()
