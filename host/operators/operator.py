# SPDX-License-Identifier: Apache-2.0
"""What an operator on rows is."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TypeAlias

import pyarrow as pa

from host.operators.rows import CopyCounters, Rows

__all__ = ["Operator", "Submitted"]

#: What an operator submits, as it is pulled: rows, or None where it has worked and has none yet.
Submitted: TypeAlias = Generator[Rows | None, None, None]


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
    def apply(self, rows: Rows) -> Submitted:
        """Take ``rows`` and yield any number of others.

        An operator does no more than what it is asked for: it is not resumed when nobody wants
        more rows, but closed. Where it works for long without any rows to submit it yields None
        now and then, so that its caller can stop it.
        """

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is submitted when ``schema`` is taken.

        By default found by applying the operator to no rows.
        """
        empty = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        for submitted in self.apply(Rows.of_batch(empty[0], CopyCounters())):
            if submitted is not None:
                return submitted.batch().schema
        return schema

    def __str__(self) -> str:
        return type(self).__name__.lower()
