# SPDX-License-Identifier: Apache-2.0
"""The control words that begin a segment, in which other cores take turns to store."""

from collections.abc import Sequence

import numpy as np

from host.errors import UsageError
from host.manifest import Manifest
from host.reference.exact import UInt64s
from host.reference.window import CountWindow, Window
from host.words import WordCodec

__all__ = ["all_cores", "require_segments", "segment_words"]


def require_segments(manifest: Manifest) -> None:
    """Raise an error if an accelerator cannot change which cores store.

    Raises
    ------
    UsageError
        If it has no operation for that.
    """
    if "SEGMENT" not in manifest.operations:
        raise UsageError(
            "This accelerator cannot change which cores store: it has no operation SEGMENT; use a "
            "bundle that has one."
        )


def segment_words(manifest: Manifest, live: Sequence[int], window: Window) -> UInt64s:
    """Return the control words after which the cores of ``live`` store, in this order.

    Raises
    ------
    UsageError
        If the accelerator cannot change turns, if the cores are none, unknown or named twice, or if
        a count-based window does not fit them.
    """
    require_segments(manifest)
    cores = manifest.storage.cores
    if not live or len(set(live)) < len(live) or not all(0 <= core < cores for core in live):
        raise UsageError(
            f"A segment needs at least one core, each of 0 to {cores - 1} at most once, not "
            f"{list(live)}; give it the numbers of the live cores."
        )
    room = len(live) * manifest.storage.sub_window
    if isinstance(window, CountWindow) and window.size > room:
        raise UsageError(
            f"A window of {window.size} tuples does not fit {len(live)} cores, which hold {room}; "
            f"keep more cores live or choose a smaller window."
        )
    return _segment(WordCodec(manifest), live)


def all_cores(manifest: Manifest) -> UInt64s:
    """Return the control words after which all cores store, in the order of their numbers.

    They follow CLEAR, which empties both windows but leaves the segment of an earlier query in
    force. There are none for an accelerator that cannot change turns.
    """
    codec = WordCodec(manifest)
    if "SEGMENT" not in manifest.operations:
        return np.zeros((0, codec.input.columns), np.uint64)
    return _segment(codec, range(manifest.storage.cores))


def _segment(codec: WordCodec, live: Sequence[int]) -> UInt64s:
    words = [codec.pack_control("CORE", value=core) for core in live]
    return np.concatenate([*words, codec.pack_control("SEGMENT")])
