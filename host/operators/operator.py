# SPDX-License-Identifier: Apache-2.0
"""The base class of operators on rows."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TypeAlias

import pyarrow as pa

from host.operators.rows import CopyCounters, Rows

__all__ = ["Operator", "Submitted"]

#: Output of an operator: rows, or None where it has worked without having rows yet.
Submitted: TypeAlias = Generator[Rows | None, None, None]


class Operator(ABC):
    """A stateless step: it receives rows, and submits rows that depend on them alone.

    Attributes
    ----------
    mutates_input : bool
        Whether the input port is mutating: the operator may write into the rows that it receives.
    mutable_output : bool
        Whether the output port is mutating: the operator gives up the rows that it submits.
    submits : bool
        Whether the operator submits rows at all.
    retains : bool
        Whether received rows may be referred to after the call, other than by submitted rows.
    """

    mutates_input = False
    mutable_output = True
    submits = True
    retains = False

    @abstractmethod
    def apply(self, rows: Rows) -> Submitted:
        """Take ``rows`` and yield any number of others.

        An operator works only on request: if no more rows are wanted, it is not resumed but closed.
        If it works for a long time without rows to submit, it yields None from time to time, so
        that its caller can stop it.
        """

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the submitted rows for an input of the given ``schema``.

        By default, the operator is applied to an empty batch to find it.
        """
        empty = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        for submitted in self.apply(Rows.of_batch(empty[0], CopyCounters())):
            if submitted is not None:
                return submitted.batch().schema
        return schema

    def __str__(self) -> str:
        return type(self).__name__.lower()
