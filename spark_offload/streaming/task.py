# SPDX-License-Identifier: Apache-2.0
"""What the tasks of a streaming join need to know."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from host.query import JoinQuery
from spark_offload.devices import DeviceSource
from spark_offload.tagged import LEFT

__all__ = ["StreamTask"]


@dataclass(frozen=True)
class StreamTask:
    """All that the tasks need to know; shipped with the functions.

    Parameters
    ----------
    query : JoinQuery
        What to join.
    devices : DeviceSource
        Where to get a device, shipped.
    left, right, output : Schema
        Columns of the inputs and of the answer.
    groups : tuple of int
        Keys of the groups of rows.
    width : int
        Width of the window, in microseconds.
    slice_length : int
        Microseconds that a slice of the kept rows covers.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    """

    query: JoinQuery
    devices: DeviceSource
    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    groups: tuple[int, ...]
    width: int
    slice_length: int
    question: Mapping[str, str]

    def schema(self, side: int) -> pa.Schema:
        """Return the columns of one side."""
        return self.left if side == LEFT else self.right

    def order(self, side: int) -> str:
        """Return the order column of one side."""
        return self.query.order[side]
