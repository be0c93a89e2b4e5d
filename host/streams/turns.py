# SPDX-License-Identifier: Apache-2.0
"""The control words that begin a segment, in which other cores take turns to store."""

from collections.abc import Sequence

import numpy as np

from host.errors import UsageError
from host.exact import UInt64s
from host.manifest import Manifest
from host.window import CountWindow, Window
from host.words import WordCodec

__all__ = ["segment_words"]


def segment_words(manifest: Manifest, live: Sequence[int], window: Window) -> UInt64s:
    """Return the control words after which the cores of ``live`` store, in this order.

    Raises
    ------
    UsageError
        If the accelerator cannot change turns, if the cores are none, unknown or named twice, or if
        a count-based window does not fit them.
    """
    if "SEGMENT" not in manifest.operations:
        raise UsageError(
            "This accelerator cannot change which cores store: it has no operation SEGMENT; use a "
            "bundle that has one."
        )
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
    codec = WordCodec(manifest)
    words = [codec.pack_control("CORE", value=core) for core in live]
    return np.concatenate([*words, codec.pack_control("SEGMENT")])
