# SPDX-License-Identifier: Apache-2.0
"""Two inputs sorted by time as one tagged stream in the order of arrival."""

from dataclasses import dataclass

import numpy as np

from host.runtime import Columns, ConfluenceExecStream, ConfluenceParams, Quantum, StreamResult
from host.side import Side

__all__ = ["OrderMerge", "OrderMergeParams"]


@dataclass(frozen=True)
class OrderMergeParams(ConfluenceParams):
    """Parameters of :class:`OrderMerge`."""


class OrderMerge(ConfluenceExecStream[OrderMergeParams, Columns, Columns]):
    """Merges input 0 (side R) and input 1 (side S) by ``timestamp``; on a tie R comes first.

    Both inputs have the same columns, among them ``timestamp``, which never decreases; the output
    has one more, ``side``.
    """

    fan_in = 2

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            result = self.precheck_confluence_buffers()
            if result is not StreamResult.YIELD:
                return result
            done += self._merge()
        return StreamResult.QUANTUM_EXPIRED

    def _merge(self) -> int:
        """Merge as much of the two first batches as no later row can come before."""
        heads = {side: self.inputs[side].access() for side in Side if not self.inputs[side].at_end}
        takes = {side: head.num_rows for side, head in heads.items()}
        if len(heads) == 2:
            times = {side: head["timestamp"] for side, head in heads.items()}
            last_r, last_s = times[Side.R][-1], times[Side.S][-1]
            if last_r <= last_s:
                # A later row of R may tie with last_r, and would come before S's rows of that time.
                takes[Side.S] = int(np.searchsorted(times[Side.S], last_r, side="left"))
            else:
                takes[Side.R] = int(np.searchsorted(times[Side.R], last_s, side="right"))
        merged = _interleaved(
            {side: heads[side].slice(0, take) for side, take in takes.items() if take}
        )
        self.output.produce(merged)
        for side, take in takes.items():
            self.inputs[side].consume(take)
        return merged.num_rows


def _interleaved(parts: dict[Side, Columns]) -> Columns:
    """All rows of ``parts``, sorted by time, with their sides."""
    batches = [
        Columns({**part.arrays, "side": np.full(part.num_rows, side, np.uint8)})
        for side, part in parts.items()
    ]
    both = Columns.concatenate(batches)
    if len(batches) == 1:
        return both
    # Stable, and R's rows stand first: ties come out right. Two sorted runs merge in linear time.
    return both.take(np.argsort(both["timestamp"], kind="stable"))
