# SPDX-License-Identifier: Apache-2.0
"""What the tasks of a streaming join need to know."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from host.query.queries import AsofQuery, JoinQuery
from spark_offload.devices.sources import DeviceSource
from spark_offload.layout.tagged import LEFT
from spark_offload.streaming.groups import MOST_GROUPS, group_keys
from spark_offload.streaming.question import question_of_groups
from spark_offload.streaming.store import partitions_of_query

__all__ = ["AsofStreamTask", "GroupedTask", "StreamTask"]


@dataclass(frozen=True, kw_only=True)
class GroupedTask(ABC):
    """What the tasks of any join of two streams need to know; shipped with the functions.

    Parameters
    ----------
    left, right, output : Schema
        Columns of the inputs and of the answer.
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    partitions : int
        Partitions of the state, where no task tells them.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    """

    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    groups: tuple[int, ...]
    question: Mapping[str, str]
    partitions: int = 1

    def in_query(self) -> Self:
        """Return what a task of the query needs to know, which knows its number of partitions."""
        if self.groups:
            return self
        number = min(partitions_of_query(self.partitions), MOST_GROUPS)
        question = {**self.question, **question_of_groups(number)}
        return replace(self, groups=group_keys(number), question=question)

    def schema(self, side: int) -> pa.Schema:
        """Return the columns of one side."""
        return self.left if side == LEFT else self.right

    @abstractmethod
    def order(self, side: int) -> str:
        """Return the order column of one side."""


@dataclass(frozen=True, kw_only=True)
class StreamTask(GroupedTask):
    """What the tasks of a join over a window need to know.

    Parameters
    ----------
    query : JoinQuery
        What to join.
    devices : DeviceSource
        Where to get a device, shipped.
    width : int
        Width of the window, in microseconds.
    slice_length : int
        Microseconds that a slice of the kept rows covers.
    software : str or None
        Address of the software device that joins rows which the device cannot hold; None: that is
        an error.
    """

    query: JoinQuery
    devices: DeviceSource
    width: int
    slice_length: int
    software: str | None = None

    def order(self, side: int) -> str:
        return self.query.order[side]


@dataclass(frozen=True, kw_only=True)
class AsofStreamTask(GroupedTask):
    """What the tasks of an as-of join need to know.

    Parameters
    ----------
    query : AsofQuery
        What to join.
    ahead : int
        Microseconds after a left row in which its right row can lie.
    tolerance : int or None
        Largest distance in microseconds; None: there is no limit.
    """

    query: AsofQuery
    ahead: int
    tolerance: int | None

    def order(self, side: int) -> str:
        return self.query.on[side]
