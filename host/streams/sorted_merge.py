# SPDX-License-Identifier: Apache-2.0
"""Merge sorted inputs into one sorted stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.runtime import ConfluenceExecStream, ConfluenceParams, Quantum, StreamResult
from host.streams.sort_keys import key_columns, sorting_permutation

__all__ = ["SortedMerge", "SortedMergeParams", "merge_heads"]


def merge_heads(
    heads: Sequence[pa.RecordBatch], open_ends: Sequence[bool], by: Sequence[str], most: int
) -> tuple[pa.RecordBatch, list[int]]:
    """Merge those rows of the first batches of sorted inputs that no later row can precede.

    Equal rows come in the order of the inputs, and within an input in its own order.

    Parameters
    ----------
    heads : sequence of RecordBatch
        First batch of every input; at least one batch, none of them empty.
    open_ends : sequence of bool
        Whether more rows of each input may follow.
    by : sequence of str
        Columns to sort by.
    most : int
        Largest number of rows to return, at least one.

    Returns
    -------
    merged : RecordBatch
        Merged rows, at least one.
    taken : list of int
        Number of rows taken from each head.
    """
    if len(heads) == 1:
        only = heads[0].slice(0, most)
        return only, [only.num_rows]
    rows = pa.concat_batches([head.select(list(by)) for head in heads])
    order = sorting_permutation(rows, by).to_numpy()
    sizes = [head.num_rows for head in heads]
    ends = np.cumsum(sizes)
    # No row may leave behind the last row of an input that goes on: the first such row is the
    # limit.
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    limits = [int(place[end - 1]) for end, more in zip(ends, open_ends, strict=True) if more]
    order = order[: min(most, min(limits, default=len(order) - 1) + 1)]
    taken = np.diff(np.searchsorted(np.sort(order), np.concatenate([[0], ends])))
    merged = pa.concat_batches(list(heads)).take(pa.array(order))
    return merged, [int(count) for count in taken]


@dataclass(frozen=True)
class SortedMergeParams(ConfluenceParams):
    """Parameters of :class:`SortedMerge`.

    Parameters
    ----------
    by : sequence of str
        Columns that every input is sorted by, ascending, nulls last.
    """

    by: Sequence[str]


class SortedMerge(ConfluenceExecStream[SortedMergeParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that merges any number of equally sorted inputs of one schema; stable."""

    def prepare(self, params: SortedMergeParams) -> None:
        super().prepare(params)
        self._by = tuple(params.by)

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            result = self.precheck_confluence_buffers()
            if result is not StreamResult.YIELD:
                return result
            buffers = [buffer for buffer in self.inputs if not buffer.at_end]
            heads = [buffer.access() for buffer in buffers]
            by = key_columns(heads[0].schema, self._by)
            more = [
                not buffer.last or buffer.rows > head.num_rows
                for buffer, head in zip(buffers, heads, strict=True)
            ]
            merged, taken = merge_heads(heads, more, by, self.output.provide())
            self.output.produce(merged)
            for buffer, count in zip(buffers, taken, strict=True):
                buffer.consume(count)
            done += merged.num_rows
        return StreamResult.QUANTUM_EXPIRED
