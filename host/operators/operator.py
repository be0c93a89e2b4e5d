# SPDX-License-Identifier: Apache-2.0
"""What an operator on rows is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from host.operators.rows import CopyCounters, Rows

__all__ = ["Emit", "Operator"]

#: Takes the rows that an operator submits.
Emit: TypeAlias = Callable[[Rows], None]


class Operator(ABC):
    """A stateless step: it sees some rows, and submits rows that depend on them alone.

    Attributes
    ----------
    mutates_input : bool
        Whether the input port is mutating: rows are the operator's to write into.
    mutable_output : bool
        Whether the output port is mutating: the operator lets go of what it submits.
    submits : bool
        Whether it submits rows at all.
    retains : bool
        Whether rows may be referred to after the call, besides by what is submitted.
    """

    mutates_input = False
    mutable_output = True
    submits = True
    retains = False

    @abstractmethod
    def apply(self, rows: Rows, emit: Emit) -> None:
        """Take ``rows`` and submit any number of others."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is submitted when ``schema`` is taken.

        By default found by applying the operator to no rows.
        """
        submitted: list[Rows] = []
        empty = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        self.apply(Rows.of_batch(empty[0], CopyCounters()), submitted.append)
        return submitted[0].batch().schema if submitted else schema

    def __str__(self) -> str:
        return type(self).__name__.lower()
