# SPDX-License-Identifier: Apache-2.0
"""Execution streams: the graph that moves batches, modelled on Fennel's ExecStream.

A stream is prepared once, and then opened, executed and closed any number of times. ``execute``
never blocks, buffers between streams are bounded, and one scheduler drives the graph to completion.
What a stream does with rows is not here: see :mod:`host.pipeline` and :mod:`host.session`.
"""

from host.runtime.buffer import (
    Buffer,
    BufferState,
    ColumnLog,
    Columns,
    GraphError,
    Passing,
    Transfer,
    plan_transfers,
)
from host.runtime.graph import ExecStreamGraph, Governor, Stream
from host.runtime.scheduler import OnError, Scheduler
from host.runtime.source import Ahead
from host.runtime.stream import (
    BUFFER_BYTES,
    Broadcast,
    ConduitExecStream,
    ConfluenceExecStream,
    ExecStream,
    Quantity,
    Quantum,
    Requirements,
    SingleOutputExecStream,
    StreamParams,
    StreamResult,
    StreamState,
)

__all__ = [
    "Ahead",
    "BUFFER_BYTES",
    "Broadcast",
    "StreamParams",
    "Buffer",
    "BufferState",
    "ColumnLog",
    "Columns",
    "ConduitExecStream",
    "ConfluenceExecStream",
    "ExecStream",
    "ExecStreamGraph",
    "Governor",
    "GraphError",
    "OnError",
    "Passing",
    "Quantity",
    "Quantum",
    "Requirements",
    "Scheduler",
    "SingleOutputExecStream",
    "Stream",
    "StreamResult",
    "StreamState",
    "Transfer",
    "plan_transfers",
]
