# SPDX-License-Identifier: Apache-2.0
"""Compare the result of a join with the reference join."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.device.software import SOFTWARE_MANIFEST
from host.encode import EncodedSide, encode
from host.encode.contiguous import contiguous
from host.encode.recheck import Recheck
from host.manifest import Manifest
from host.query.join_query import JoinQuery
from host.query.tables import without_views
from host.reference.arrivals import Arrivals
from host.reference.join import Matches, reference_join
from host.reference.join_type import NO_ROW
from host.reference.predicate import DifferenceBand
from host.reference.types import reference_rows

__all__ = ["Verdict", "compare_pairs", "reference_pairs"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Verdict:
    """Outcome of a comparison.

    Parameters
    ----------
    agrees : bool
        Whether both results are equal.
    text : str
        The outcome in one sentence.
    """

    agrees: bool
    text: str


def reference_pairs(left: pa.Table, right: pa.Table, query: JoinQuery) -> tuple[Int64s, Int64s]:
    """Return the row numbers of all results of the reference join, in strict order.

    Columns are encoded for 64-bit fields, whatever fields a device has. If a result has no row of a
    side, its row number is -1.
    """
    left, right = without_views(left), without_views(right)
    encoded = encode(left, right, query, Manifest.load(SOFTWARE_MANIFEST))
    sides = (encoded.left, encoded.right)
    # Without terms there are no key fields; row numbers take their place, and no bound applies to
    # them.
    r_keys, s_keys = (side.keys or {"row": side.row} for side in sides)
    arrivals = Arrivals.merge(r_keys, s_keys, sides[0].timestamp, sides[1].timestamp)
    matches = reference_join(arrivals, DifferenceBand(encoded.bounds), encoded.window)
    r, s = matches.rows(arrivals)
    keep = _valid(sides[0], r) & _valid(sides[1], s)
    rows = sides[0].row[r], sides[1].row[s]
    for term in encoded.rough_terms:
        recheck = Recheck.of(term, left.schema, right.schema)
        columns = [
            contiguous(table.column(place)).take(pa.array(numbers))
            for table, place, numbers in zip((left, right), recheck.places, rows, strict=True)
        ]
        keep &= recheck.holds(columns)
    matches = Matches(matches.probe[keep], matches.stored[keep])
    answer = reference_rows(arrivals, matches, encoded.window, query.how)
    return _rows(sides[0], answer[0]), _rows(sides[1], answer[1])


def compare_pairs(
    got: tuple[Int64s, Int64s], expected: tuple[Int64s, Int64s], *, ordered: bool
) -> Verdict:
    """Compare the row numbers of results, in order or as multisets."""
    if not ordered:
        got, expected = _sorted(got), _sorted(expected)
    if len(got[0]) == len(expected[0]) and all(
        np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True)
    ):
        return Verdict(True, f"all {len(got[0])} results agree with the reference join")
    common = min(len(got[0]), len(expected[0]))
    differs = (got[0][:common] != expected[0][:common]) | (got[1][:common] != expected[1][:common])
    place = int(np.argmax(differs)) if differs.any() else common
    return Verdict(
        False,
        f"{len(got[0])} results, but the reference join has {len(expected[0])}; they differ from "
        f"result {place} (the first is 0) on: {_pair(got, place)}, not {_pair(expected, place)}",
    )


def _rows(side: EncodedSide, tuples: Int64s) -> Int64s:
    rows = np.full(len(tuples), NO_ROW, np.int64)
    there = tuples != NO_ROW
    rows[there] = side.row[tuples[there]]
    return rows


def _valid(side: EncodedSide, tuples: Int64s) -> npt.NDArray[np.bool_]:
    return np.ones(len(tuples), np.bool_) if side.valid is None else side.valid[tuples]


def _sorted(pairs: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    order = np.lexsort((pairs[1], pairs[0]))
    return pairs[0][order], pairs[1][order]


def _pair(pairs: tuple[Int64s, Int64s], place: int) -> str:
    if place >= len(pairs[0]):
        return "nothing"
    names = [
        "no " + name if rows[place] == NO_ROW else f"{name} {rows[place]}"
        for rows, name in zip(pairs, ("left row", "right row"), strict=True)
    ]
    return " with ".join(names)
