# SPDX-License-Identifier: Apache-2.0
"""The control words that configure an accelerator for a query, and those that begin a segment."""

from collections.abc import Mapping, Sequence

import numpy as np

from host.arrays import UInt64s
from host.errors import AcceleratorLimitError, UsageError
from host.installation import command
from host.protocol.buckets import Coordinate, bucket_plan
from host.protocol.cells import cell_plan
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.protocol.segments import require_live, round_size
from host.protocol.spread import Spread, tightened
from host.query.ordering import Ordering
from host.query.queries import OnFailure, Query
from host.reference.arrivals import Side
from host.reference.predicate import OPEN, Bounds
from host.reference.window import CountWindow, Window

__all__ = [
    "MARKS",
    "all_cores",
    "configuration",
    "coordinate_words",
    "lacking",
    "require_abilities",
    "require_segments",
    "segment_words",
]

# The control words that configure an accelerator for a query.

#: Number of marks that answer the words: one for the precision and one for CLEAR, the last two.
MARKS = 2


def configuration(
    manifest: Manifest,
    bounds: Mapping[str, Bounds],
    window: Window,
    ordering: Ordering,
    distinct: tuple[bool, bool] = (False, False),
    *,
    spreads: Mapping[str, Spread] | None = None,
    choice: int = 0,
    newest_of: Side | None = None,
) -> UInt64s:
    """Return the control words for a query.

    They set the bounds, the parts of the fields in the bucket number or the cells of digests,
    whether keys are distinct, the windows of both sides, and the precision; the last one is CLEAR.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    bounds : mapping of str to Bounds
        Bounds by key field; other fields are not bounded.
    window : CountWindow or TimeWindow
        Window of both sides, or of the side ``newest_of`` alone.
    ordering : Ordering
        Precision that the accelerator is set to. One in hardware needs an accelerator with rounds.
    distinct : tuple of bool
        Whether a probe can match at most one tuple in the window of R, and of S. An index then ends
        its search at the first match.
    spreads : mapping of str to Spread, optional
        Known facts about the values, by key field, which decide the buckets or the cells. The
        caller must make sure that they are true.
    choice : int
        Choice of the index's hash seeds; see :func:`host.protocol.spread.seeds`.
    newest_of : Side, optional
        The side of whose window only the newest match of each probe is wanted. An index then ends
        its search at the first match, which is the newest one of a core. The other side's window
        holds one tuple, the least that it can.
    """
    codec = WordCodec(manifest)
    spreads = spreads or {}
    words = []
    for index, key in enumerate(manifest.keys):
        open_low, open_high = -(1 << key.bits), (1 << key.bits) - 1
        term = tightened(bounds.get(key.name, OPEN), spreads.get(key.name))
        low = open_low if term.low is None else max(term.low, open_low)
        high = open_high if term.high is None else min(term.high, open_high)
        if low > open_high or high < open_low:  # no difference of values is within the bounds
            low, high = 0, -1
        words.append(codec.pack_control("BOUND_LOW", index, low))
        words.append(codec.pack_control("BOUND_HIGH", index, high))
    if "COORDINATE" in manifest.operations:
        words.append(coordinate_words(manifest, bucket_plan(manifest, bounds, spreads, choice)))
        first = [distinct[side] or side is newest_of for side in Side]
        words += [codec.pack_control("DISTINCT", side, int(first[side])) for side in Side]
    if manifest.digests is not None:
        cells = cell_plan(manifest, bounds, spreads)
        values = [cell.value(manifest) for cell in cells]
        words += [codec.pack_control("CELL", part, value) for part, value in enumerate(values)]
    for side in Side:
        own = CountWindow(1) if newest_of is side.other else window
        if isinstance(own, CountWindow):
            words.append(codec.pack_control("WINDOW", side, int(own.size)))
        else:
            words.append(codec.pack_control("LIFESPAN", side, int(own.lifespan)))
    if ordering.in_hardware:
        words.append(codec.pack_control("INNER", 0, round_size(manifest, ordering.rounds)))
    else:
        longest = 1 << manifest.probe_bits  # the accelerator takes it for every longer period
        words.append(codec.pack_control("PRECISION", 0, min(ordering.period, longest)))
    words.append(codec.pack_control("CLEAR"))
    return np.concatenate(words)


def coordinate_words(manifest: Manifest, plan: Mapping[str, Coordinate]) -> UInt64s:
    """Return the control words that set the parts of all fields in an index's bucket number.

    They empty both windows.
    """
    codec = WordCodec(manifest)
    parts = [part.value(manifest) for part in plan.values()]
    words = []
    # Reset all parts first, so that no field gets bits that another one still has.
    if manifest.has_grid and len(parts) > 1:
        words += [codec.pack_control("COORDINATE", index, 0) for index in range(len(parts))]
    words += [codec.pack_control("COORDINATE", index, part) for index, part in enumerate(parts)]
    return np.concatenate(words)


# The control words that begin a segment, in which other cores take turns to store.


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


#: What a query may ask for that not every accelerator can do, and the option of ``python -m hdl
#: generate`` and ``sim build`` that gives it to one.
_ABILITIES = (
    ("on_failure", "gates of its cores, which notice a failure", "--failure-cycles CYCLES"),
    ("an inner order in hardware", "rounds", "--rounds"),
    ("elastic", "two cores or more that take turns", "--cores N"),
)


def lacking(manifest: Manifest) -> list[str]:
    """Return what an accelerator lacks for some words of a query, and the options that give it."""
    return [f"{word} needs {what} ({option})" for word, what, option in _lacked(manifest)]


def _lacked(manifest: Manifest) -> list[tuple[str, str, str]]:
    there = (
        "MASK" in manifest.operations,
        "INNER" in manifest.operations,
        "SEGMENT" in manifest.operations and manifest.storage.cores > 1,
    )
    return [ability for ability, is_there in zip(_ABILITIES, there, strict=True) if not is_there]


def require_abilities(query: Query, manifest: Manifest, uri: str | None) -> None:
    """Raise if a query asks for what an accelerator cannot do, and would not have.

    An inner order in hardware is none of that: without rounds, the host gives results that order.

    Parameters
    ----------
    query : Query
        The join.
    manifest : Manifest
        Manifest of the accelerator.
    uri : str or None
        Its address; None for the software engine.

    Raises
    ------
    AcceleratorLimitError
        If its cores have no gates, or it has no cores to choose from.
    """
    asked = {
        "on_failure": query.on_failure is not OnFailure.RAISE,
        "elastic": query.elastic is not None,
    }
    for word, what, option in _lacked(manifest):
        if asked.get(word):
            of = "the software engine" if uri is None else f"device {uri!r}"
            raise AcceleratorLimitError(
                f"The query asks for {word}, which needs {what}, and {of} has none",
                f"use device 'sim:', which has them then, build a bundle with "
                f"`{command('sim build')} … {option}`, or leave it out",
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
    require_live(live, manifest.storage.cores)
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
