# SPDX-License-Identifier: Apache-2.0
"""The files of an input as batches in the order of time, however the rows lie in the files.

What is not promised to be sorted is looked at: first the statistics of Parquet, then the times,
which are read without the other columns. Rows in order are read as they lie. Files that are in
order one by one are merged. All other rows are sorted, in runs that fit the memory and are merged
from temporary files; see :class:`host.pipeline.sorting.Sort`.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from host.columns.kinds import (
    ColumnType,
    Ranges,
    column_type,
    integer_view,
    seen_ranges,
)
from host.columns.times import OrderCheck, require_temporal
from host.files.reading import Dataset
from host.runtime import BUFFER_BYTES, Ahead, Governor, Quantity

if TYPE_CHECKING:
    from host.pipeline.pipeline import Pipeline

__all__ = [
    "MEMORY",
    "Order",
    "OrderedInput",
]

#: Memory for the rows of inputs that have to be sorted, in bytes, unless another is given.
MEMORY = 1_000_000_000
#: Bytes that are needed besides: libraries, a batch of each file, a block of the join.
_BESIDES = 256 << 20
#: Least bytes that a run of sorted rows takes.
_LEAST_RUN = 4 << 20


class Order(Enum):
    """Order of the rows of files, and what puts them into the order of time."""

    PROMISED = "declared to be sorted"
    FOUND = "found to be sorted"
    BY_FILE = "each file is found to be sorted, and they are merged"
    NONE = "not sorted, so the rows are sorted first"


class OrderedInput:
    """The rows of an input in the order of time; rows of one time keep the order of the files.

    Parameters
    ----------
    dataset : Dataset
        The files.
    by : str
        The column of time.
    side : str
        What messages call the input.
    is_sorted : bool
        Whether each file is declared to be sorted.
    memory : int
        Bytes that a command may take, of which this is one of two inputs.
    columns : sequence of str, optional
        Columns that are read besides the time; by default all, as where one of them is missing or
        there twice, which is told where it is used.

    Attributes
    ----------
    dataset, by
        As given.
    column : ColumnType
        The column of time.
    order : Order
        How the rows lie in the files.
    rows : int
        Number of rows; zero as long as it is not known.

    Raises
    ------
    UsageError
        If the column is missing, or gives no order.
    """

    def __init__(
        self,
        dataset: Dataset,
        by: str,
        side: str,
        *,
        is_sorted: bool = False,
        memory: int = MEMORY,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.dataset, self.by = dataset, by
        self.column: ColumnType = column_type(dataset.schema, by, side)
        require_temporal(self.column)
        self._side, self._is_sorted, self._memory = side, is_sorted, memory
        self._columns: list[str] | None = None
        counts = Counter(dataset.schema.names)
        if columns is not None and all(counts[name] == 1 for name in columns):
            self._columns = list(dict.fromkeys([by, *columns]))
        self.rows = dataset.rows or 0
        self.order = self._looked_at()

    def __str__(self) -> str:
        return f"{self.dataset.path}: {self.order.value}"

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.dataset.schema_of(self._columns)

    def _looked_at(self) -> Order:
        if self._is_sorted:
            return Order.PROMISED
        return Order.NONE if self._falls_by_statistics() else self._found()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of time; a thread reads the next ones meanwhile.

        Raises
        ------
        OrderError
            If a time is null, where the error names the row as it lies in the files; or if a file
            that is declared to be sorted is not, and is merged with others.
        """
        thread = ThreadPoolExecutor(1)
        return self._counted(Ahead(self._in_order(), thread), thread)

    def _counted(
        self, batches: Ahead[pa.RecordBatch], thread: ThreadPoolExecutor
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        with thread, closing(batches):
            for batch in batches:
                rows += batch.num_rows
                yield batch
        self.rows = rows

    def ranges(self, columns: Sequence[str]) -> Ranges:
        """Return the ranges of columns whose values are numbers or times, by reading these."""
        types = [column_type(self.schema, name, self._side) for name in columns]
        return seen_ranges(types, self.dataset.batches)

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of :meth:`batches`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def pipeline(self) -> "Pipeline":
        """Return the rows for what takes them in any order; sorted by time if they lie so."""
        from host.pipeline.pipeline import Pipeline

        if self.order in (Order.PROMISED, Order.FOUND):
            return Pipeline.of_batches(self.batches, self.schema, sorted_by=[self.by])
        return Pipeline.of_batches(partial(self.dataset.batches, self._columns), self.schema)

    def _in_order(self) -> Generator[pa.RecordBatch, None, None]:
        # Rows that lie in order need no pipeline, which takes its time to load.
        dataset, order = self.dataset, self.order
        if order is Order.NONE:
            from host.pipeline.pipeline import Pipeline

            buffers = max((self._memory - _BESIDES) // 2, _LEAST_RUN) // BUFFER_BYTES
            rows = Pipeline.of_batches(self._with_times, self.schema).sorted(self.by)
            yield from rows.governed_by(Governor(Quantity(buffers=buffers))).batches()
        elif len(dataset.files) == 1 or order is Order.FOUND:
            yield from dataset.batches(self._columns)
        else:
            from host.pipeline.merging import merge_sorted

            names = [f"file {str(file)!r}" for file in dataset.files]
            yield from merge_sorted(dataset.parts(self._columns), self.by, names)

    def _with_times(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they lie in the files; raise at one without a time."""
        check = OrderCheck(self.column, is_sorted=False)
        for batch in self.dataset.batches(self._columns):
            check.see(batch)
            yield batch

    def _falls_by_statistics(self) -> bool:
        """Return whether the parts of one Parquet file tell that it is not sorted."""
        if len(self.dataset.files) > 1:
            return False
        told: list[tuple[Any, Any]] = [
            group[self.by] for group in self.dataset.groups if self.by in group
        ]
        return any(before[1] > behind[0] for before, behind in pairwise(told))

    def _found(self) -> Order:
        """Return the order of the rows, from their times."""
        rows, latest, is_sorted = 0, None, True
        for part in self.dataset.parts([self.by]):
            last = None
            for batch in part():
                array = self.column.read(batch)
                if array.null_count or not len(array):
                    rows += len(array)
                    if array.null_count:
                        return Order.NONE  # the row is named when all of it is read
                    continue
                times = integer_view(array)
                first = int(times[0])
                if (last is not None and first < last) or (times[1:] < times[:-1]).any():
                    return Order.NONE
                is_sorted &= latest is None or first >= latest
                latest = last = int(times[-1])
                rows += len(array)
        self.rows = rows
        return Order.FOUND if is_sorted else Order.BY_FILE
