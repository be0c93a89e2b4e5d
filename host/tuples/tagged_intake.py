# SPDX-License-Identifier: Apache-2.0
"""Take one input that holds the rows of both sides in their order of arrival."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode import EncodedBatch, EncodingPlan
from host.encode.kinds import integer_view, shown
from host.errors import DisorderError, UsageError
from host.manifest import Manifest
from host.reference.side import Side
from host.runtime import Buffer, Columns
from host.tuples.intake import Arrived, Intake, SideTuples, TakeRows
from host.tuples.row_store import Rows
from host.tuples.tracked_rows import RowTimes

__all__ = ["TaggedIntake", "TaggedLayout"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TaggedLayout:
    """Positions of the columns of both sides in tagged batches.

    Parameters
    ----------
    left, right : pa.Schema
        Columns of the sides, by the names that the query uses; the left columns come first. In a
        row of one side, the columns of the other side may hold anything.
    first : int
        Position of the first left column.
    shared : bool
        Whether the right columns have the positions of the left ones; the types are then the same.
    side : str
        Name of an int8 column: 0 in a left row, 1 in a right row.
    halo : str, optional
        Name of a boolean column, true in halo rows. Halo rows are there only for later rows to
        meet, and precede all other rows. A pair whose later row is a halo row is not in the result.
    alone : str, optional
        Name of a boolean column, true in rows that may be in the result alone, if the type of the
        join has such rows. By default, all rows may.
    """

    left: pa.Schema
    right: pa.Schema
    first: int
    shared: bool = False
    side: str = "side"
    halo: str | None = None
    alone: str | None = None

    @property
    def slices(self) -> tuple[slice, slice]:
        """Positions of the columns of either side."""
        end = self.first + len(self.left)
        begin = self.first if self.shared else end
        return slice(self.first, end), slice(begin, begin + len(self.right))


class TaggedIntake(Intake):
    """Separates the sides of a tagged input, whose order is the order of arrival.

    Rows are numbered over both sides, as in :class:`~host.tuples.row_store.SharedRows`.
    """

    def __init__(
        self,
        inputs: Sequence[Buffer[pa.RecordBatch]],
        plan: EncodingPlan,
        rows: tuple[Rows, Rows],
        manifest: Manifest,
        layout: TaggedLayout,
        tell: TakeRows | None = None,
    ) -> None:
        super().__init__(inputs, plan, rows, manifest, tell)
        self._tag = layout.side
        self._halo = layout.halo
        self._alone = layout.alone
        self._reached = 0
        self._number = 0  # number of rows of both sides so far
        self._halos = 0  # number of halo rows, which come first
        self._last: tuple[int, object] = (0, None)  # last timestamp, encoded and original
        # Per side: positions and names of the columns that are encoded.
        self._wanted: list[tuple[list[int], list[str]]] = []
        for side, schema, columns in zip(
            Side, (layout.left, layout.right), layout.slices, strict=True
        ):
            names = list(plan.columns(side))
            self._wanted.append(
                ([columns.start + schema.get_field_index(name) for name in names], names)
            )

    @property
    def at_end(self) -> bool:
        return self._inputs[0].at_end

    @property
    def reached(self) -> int:
        return self._reached

    def next_row(self, side: Side) -> int:
        del side  # rows are numbered over both sides
        return self._number

    def take(self) -> Arrived | None:
        buffer = self._inputs[0]
        while not buffer.at_end and buffer.demand():
            batch = self._receive(buffer)
            self._rows[Side.R].append(batch)
            halos = self._halo_rows(batch)
            arrived = self._taken_apart(batch, halos)
            self._number += batch.num_rows
            self._halos += halos
            if arrived.count or self._tell is not None:
                return arrived
        return None

    def owned(self, pairs: Columns) -> Columns:
        if not self._halos:
            return pairs
        later = np.maximum(pairs["left"], pairs["right"])
        return pairs.take(np.flatnonzero(later >= self._halos))

    def _halo_rows(self, batch: pa.RecordBatch) -> int:
        """Return how many rows of ``batch`` are halo rows, which must be the first ones."""
        if self._halo is None:
            return 0
        count: int = batch.column(self._halo).true_count
        misplaced = count and (
            self._halos < self._number or batch.column(self._halo)[:count].true_count < count
        )
        if misplaced:
            raise UsageError(
                f"Halo rows come before all others, but one follows in the batch of row "
                f"{self._number}; sort the rows by time, those of column {self._halo!r} first."
            )
        return count

    def _answered(self, batch: pa.RecordBatch, at: Int64s) -> npt.NDArray[np.bool_] | None:
        """Return which of the rows at the places ``at`` are in the result if they come alone."""
        if self._alone is None:
            return None
        flags: npt.NDArray[np.bool_] = batch.column(self._alone).to_numpy(zero_copy_only=False)
        return flags[at]

    def _taken_apart(self, batch: pa.RecordBatch, halos: int) -> Arrived:
        tags = integer_view(batch.column(self._tag))
        members = {side: np.flatnonzero(tags == side) for side in Side}
        parts = [(side, self._part(batch, side, at)) for side, at in members.items() if len(at)]
        self._settle(parts)
        encoded: dict[Side, EncodedBatch] = {}
        places: dict[Side, Int64s] = {}
        own: dict[Side, EncodedBatch] = {}  # with row numbers of the side itself
        for side, part in parts:
            tuples = own[side] = self._encode(side, part)
            at = members[side]
            self._reached = max(self._reached, int(tuples.all_times[-1]))
            if self._tell is not None:
                answered = self._answered(batch, at)
                self._tell(side, RowTimes(at + self._number, tuples.all_times, answered))
            if tuples.rows is not None:
                at = at[tuples.rows - tuples.first]
            encoded[side] = replace(tuples, rows=at + self._number)
            self.counters.halo_tuples += int(np.count_nonzero(at < halos))
            places[side] = at
        count = sum(len(at) for at in places.values())
        if count < batch.num_rows:  # rows that are left out take no place
            sent = np.zeros(batch.num_rows, np.bool_)
            for at in places.values():
                sent[at] = True
            number = np.cumsum(sent) - 1
            places = {side: number[at] for side, at in places.items()}
        self._require_order(count, own, places, dict(parts))
        return Arrived(
            count,
            {
                side: SideTuples(tuples, 0, len(tuples), places[side])
                for side, tuples in encoded.items()
                if len(tuples)
            },
        )

    def _require_order(
        self,
        count: int,
        encoded: dict[Side, EncodedBatch],
        places: dict[Side, Int64s],
        parts: dict[Side, pa.RecordBatch],
    ) -> None:
        """Raise unless the rows of both sides together are in the order of time."""
        times = np.empty(count + 1, np.uint64)
        times[0] = self._last[0]
        for side, at in places.items():
            times[1 + at] = encoded[side].times
        falls = times[1:] < times[:-1]

        def value(place: int) -> tuple[Side, int, object]:
            """Return side, row number and time of the tuple at a place."""
            for side, at in places.items():
                index = int(np.searchsorted(at, place))
                if index < len(at) and at[index] == place:
                    row = int(encoded[side].row_numbers(index, index + 1)[0])
                    time = self._plan.times.columns[side].read(parts[side])
                    return side, row, shown(time[row - encoded[side].first])
            return Side.R, 0, self._last[1]

        if falls.any():
            fall = int(np.argmax(falls))
            side, row, time = value(fall)
            label = self._plan.times.columns[side].name
            raise DisorderError(label, row, value(fall - 1)[2], time)
        if count:
            self._last = int(times[-1]), value(count - 1)[2]

    def _part(self, batch: pa.RecordBatch, side: Side, at: Int64s) -> pa.RecordBatch:
        """Return the rows of one side, with only those columns that are encoded."""
        positions, names = self._wanted[side]
        columns = [batch.column(position) for position in positions]
        if len(at) < batch.num_rows:
            indices = pa.array(at)
            columns = [column.take(indices) for column in columns]
            self.counters.copied_batches += 1
            self.counters.copied_bytes += sum(column.nbytes for column in columns)
        return pa.RecordBatch.from_arrays(columns, names=names)
