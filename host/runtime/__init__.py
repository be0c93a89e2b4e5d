# SPDX-License-Identifier: Apache-2.0
"""Execution streams: the graph that moves batches, after Fennel's ExecStream.

A stream is prepared once, then opened, executed and closed any number of times. ``execute`` never
blocks; buffers between streams are bounded; one scheduler drives the graph to completion.
"""

from host.runtime.bases import (
    ConduitExecStream,
    ConduitParams,
    ConfluenceExecStream,
    ConfluenceParams,
    SingleOutputExecStream,
    SingleOutputParams,
)
from host.runtime.buffer import Batch, Buffer, BufferState
from host.runtime.columns import Columns
from host.runtime.errors import GraphError, LifeCycleError, StuckGraphError
from host.runtime.graph import ExecStreamGraph
from host.runtime.scheduler import Scheduler
from host.runtime.stream import ExecStream, Quantum, StreamParams, StreamResult, StreamState

__all__ = [
    "Batch",
    "Buffer",
    "BufferState",
    "Columns",
    "ConduitExecStream",
    "ConduitParams",
    "ConfluenceExecStream",
    "ConfluenceParams",
    "ExecStream",
    "ExecStreamGraph",
    "GraphError",
    "LifeCycleError",
    "Quantum",
    "Scheduler",
    "SingleOutputExecStream",
    "SingleOutputParams",
    "StreamParams",
    "StreamResult",
    "StreamState",
    "StuckGraphError",
]
