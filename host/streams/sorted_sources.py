# SPDX-License-Identifier: Apache-2.0
"""Several sorted sources of batches as one, merged in a graph of its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from host.errors import DisorderError
from host.runtime import ExecStreamGraph, Scheduler
from host.streams.scale_gate import ScaleGate, ScaleGateParams
from host.streams.source import ArrowSource, ArrowSourceParams

__all__ = ["merge_sorted"]


def merge_sorted(
    supplies: Sequence[Callable[[], Iterable[pa.RecordBatch]]], by: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted sources in the order of ``by``, and of the sources on a tie.

    Parameters
    ----------
    supplies : sequence of callable
        Each returns the batches of a source, all of one schema.
    by : str
        Column that every source is sorted by.
    names : sequence of str
        What the sources are called in messages, such as ``"file 'a.parquet'"``.

    Raises
    ------
    DisorderError
        If a source is not sorted; the message names it.
    """
    graph = ExecStreamGraph()
    gate = graph.add(ScaleGate(), ScaleGateParams(by=by))
    for supply in supplies:
        graph.connect(graph.add(ArrowSource(), ArrowSourceParams(supply=supply)), gate)
    graph.prepare()
    try:
        with closing(Scheduler(graph).read()) as batches:
            yield from batches
    except DisorderError as error:
        if error.partition is None:
            raise
        raise DisorderError(
            error.where, error.position, error.previous, error.value,
            source=names[error.partition],
        ) from error  # fmt: skip
