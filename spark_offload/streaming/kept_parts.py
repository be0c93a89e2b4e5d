# SPDX-License-Identifier: Apache-2.0
"""Parts of kept rows that a Python worker still holds from an earlier micro-batch.

The state store is what counts, and this is a cache of it. The directory of a group lists an
identity for each part, a digest of its bytes. A part that is held is believed only if the
directory, as Spark has just read it, lists its identity. So a task that runs again after a failure,
moves to another worker, or goes back to an earlier version of the state has the same rows: it reads
the parts that its worker does not hold.
"""

from collections import OrderedDict
from hashlib import blake2b
from typing import TypeAlias

import pyarrow as pa

from spark_offload.streaming.reduction import Cells, Reduction

__all__ = ["HELD", "GroupParts", "HeldParts", "KeptPart", "identity_of"]

MOST_BYTES = 1 << 28
"""Bytes of rows that a worker holds from one micro-batch to the next, at most."""


def identity_of(blob: bytes) -> int:
    """Return the identity of a part: 64 bits of a digest of its bytes, as a signed number."""
    return int.from_bytes(blake2b(blob, digest_size=8).digest(), "little", signed=True)


class KeptPart:
    """Rows of one side, in the order in which they came, and the cells that they lie in.

    Parameters
    ----------
    rows : Table
        The rows, which are not changed.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.bytes = rows.nbytes
        self._cells: tuple[Cells | None] | None = None

    def cells(self, reduction: Reduction, side: int) -> Cells | None:
        """Return the cells of the rows by the one question that is asked of them."""
        if self._cells is None:
            self._cells = (reduction.cells(self.rows, side),)
        return self._cells[0]


GroupParts: TypeAlias = dict[tuple[int, int], KeptPart]
"""Parts of a group by their side and identity; both sides may have the same bytes."""


class HeldParts:
    """The parts that a worker holds, by query and group.

    Parameters
    ----------
    most_bytes : int
        Bytes of rows that are held, at most, between two groups.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._groups: OrderedDict[tuple[str, int], GroupParts] = OrderedDict()

    def of(self, query: str, group: int) -> GroupParts:
        """Return the parts of a group, to be changed in place."""
        parts = self._groups.setdefault((query, group), {})
        self._groups.move_to_end((query, group))
        return parts

    def trim(self) -> None:
        """Let go of the groups that have not been used for the longest time, if there is need."""
        sizes = {
            place: sum(part.bytes for part in parts.values())
            for place, parts in self._groups.items()
        }
        total = sum(sizes.values())
        for place, size in sizes.items():
            if total <= self._most_bytes and size:
                break
            total -= size
            del self._groups[place]


HELD = HeldParts()
"""What the Python worker at hand holds."""
