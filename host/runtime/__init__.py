# SPDX-License-Identifier: Apache-2.0
"""Execution streams: the graph that moves batches, modelled on Fennel's ExecStream.

A stream is prepared once, and then opened, executed and closed any number of times. ``execute``
never
blocks, buffers between streams are bounded, and one scheduler drives the graph to completion.
"""

from host.runtime.bases import (
    ConduitExecStream,
    ConduitParams,
    ConfluenceExecStream,
    ConfluenceParams,
    DiffluenceExecStream,
    DiffluenceParams,
    SingleOutputExecStream,
    SingleOutputParams,
)
from host.runtime.broadcast import Broadcast, BroadcastParams
from host.runtime.buffer import Batch, Buffer, BufferState, Writable
from host.runtime.columns import Columns
from host.runtime.errors import GraphError, LifeCycleError, ResourceError, StuckGraphError
from host.runtime.governor import Governor
from host.runtime.graph import ExecStreamGraph, Stream
from host.runtime.mutability import Passing, Transfer, plan_transfers
from host.runtime.resources import BUFFER_BYTES, Quantity, Requirements
from host.runtime.scheduler import OnError, Scheduler
from host.runtime.stream import ExecStream, Quantum, StreamParams, StreamResult, StreamState

__all__ = [
    "BUFFER_BYTES",
    "Batch",
    "Broadcast",
    "BroadcastParams",
    "Buffer",
    "BufferState",
    "Columns",
    "ConduitExecStream",
    "ConduitParams",
    "ConfluenceExecStream",
    "ConfluenceParams",
    "DiffluenceExecStream",
    "DiffluenceParams",
    "ExecStream",
    "ExecStreamGraph",
    "Governor",
    "GraphError",
    "LifeCycleError",
    "OnError",
    "Passing",
    "Quantity",
    "Quantum",
    "Requirements",
    "ResourceError",
    "Scheduler",
    "SingleOutputExecStream",
    "SingleOutputParams",
    "Stream",
    "StreamParams",
    "StreamResult",
    "StreamState",
    "StuckGraphError",
    "Transfer",
    "Writable",
    "plan_transfers",
]
