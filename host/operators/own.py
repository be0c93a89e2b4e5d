# SPDX-License-Identifier: Apache-2.0
"""Operators of Python functions, whose keys, states and results are of any type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from host.columns.kinds import column_type
from host.columns.windows import TimeColumn
from host.errors import UsageError
from host.query.quantities import Duration
from host.query.queries import BOUNDARIES
from host.query.tables import Input, Supply, require_column
from host.query.words import Columns, Length, Span, as_span, column_pair
from host.reference.operator import Arrival, GeneralOperator, OperatorInstance, Result

__all__ = ["OwnOperator", "operator_time", "own_results", "require_inputs", "require_software"]

# The time of an operator, which all kinds of them share.


class Windowing(Protocol):
    """What an operator says of its windows."""

    @property
    def name(self) -> str:
        """Name for messages."""

    @property
    def size(self) -> int:
        """WS, in units of the operator's time."""

    @property
    def advance(self) -> int:
        """WA."""


def operator_time(
    operator: Windowing, schema: pa.Schema, name: str, unit: Span | None, side: str
) -> TimeColumn:
    """Return a column of time of the left or the right input, and an operator's windows over it.

    Raises
    ------
    UsageError
        If there is no such column, or it is temporal and it is not said how long a unit is.
    """
    require_column(schema.names, name, f"the {side} input")
    if unit is None:
        if column_type(schema, name, side).kind.is_temporal:
            raise UsageError(
                f"Column {name!r} is of type {schema.field(name).type}, so say how long a unit "
                f"of the time of operator {operator.name!r} is, such as unit='1s'."
            )
        unit = 1
    if isinstance(unit, Duration):
        lengths = (Duration(unit.nanoseconds * n) for n in (operator.size, operator.advance))
        return TimeColumn(schema, name, *lengths)
    return TimeColumn(schema, name, unit * operator.size, unit * operator.advance)


def require_inputs(name: str, needed: int, given: int) -> None:
    """Raise :exc:`UsageError` unless an operator is given as many inputs as it has."""
    if given != needed:
        raise UsageError(
            f"Operator {name!r} has {needed} input{'s' * (needed > 1)}, not {given}: "
            f"{'give it the right one too' if needed > given else 'leave the right one out'}."
        )


# An operator of functions.


def require_software(operator: "OwnOperator", device: str | None) -> None:
    """Raise :exc:`UsageError` if an accelerator is to run Python functions."""
    if device not in (None, "software:"):
        raise UsageError(
            f"Operator {operator.name!r} consists of Python functions, which no accelerator has: "
            f"leave device {device!r} out, or describe the operator by a WindowedOperator."
        )


@dataclass(frozen=True, kw_only=True)
class OwnOperator(GeneralOperator):
    """O+ whose functions are those of a program: a state is any Python object.

    An :class:`~host.reference.operator.Arrival` has a row as its payload, a dict with a value for
    each column. ``update`` and ``output`` put out mappings of names to values.

    No circuit and no Spark task has it. What numbers and expressions can say is better described as
    a :class:`~host.operators.windowed.WindowedOperator`.

    Parameters
    ----------
    name : str
        Name for messages.
    schema : pa.Schema
        S: names and types of what it puts out.

    Raises
    ------
    UsageError
        If there are no such windows or inputs.
    """

    name: str
    schema: pa.Schema

    def __str__(self) -> str:
        return f"functions {self.name!r}, windows of {self.size} every {self.advance}"

    def __post_init__(self) -> None:
        if not 1 <= self.advance <= self.size:
            raise UsageError(
                f"Windows of operator {self.name!r} are of {self.size} every {self.advance}, but "
                f"1 <= advance <= size must hold."
            )
        if self.inputs not in (1, 2):
            raise UsageError(
                f"Operator {self.name!r} has {self.inputs} inputs; an operator has 1 or 2."
            )


def own_results(
    inputs: Sequence[Input],
    operator: OwnOperator,
    time: Columns = "timestamp",
    unit: Length | None = None,
) -> pa.Table:
    """Return the results of an operator of functions, by Algorithm 2 of STRETCH, row by row.

    Parameters
    ----------
    inputs : sequence of pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows of each input, in any order; all are in memory.
    operator : OwnOperator
    time, unit
        As for :class:`~host.operators.operate.OperatorQuery`.

    Returns
    -------
    pa.Table
        ``window_end`` and the columns of the operator's schema, by the ends of windows, then keys.

    Raises
    ------
    UsageError
        If an input, a column or what the functions put out does not suit.
    """
    supplies = [Supply(rows) for rows in inputs]
    require_inputs(operator.name, operator.inputs, len(supplies))
    names = column_pair(time, "time")
    span = None if unit is None else as_span(unit, "unit", least=1)
    times = [
        operator_time(operator, one.schema, name, span, side)
        for one, name, side in zip(supplies, names, ("left", "right"), strict=False)
    ]
    units = times[0].window // operator.size  # of the column, in one of the operator
    arrivals = []
    for side, (supply, column) in enumerate(zip(supplies, times, strict=True)):
        row = 0
        for batch in supply.batches():
            moments = (column.read(batch, row) // units).tolist()
            arrivals += [
                Arrival(moment, payload, side)
                for moment, payload in zip(moments, batch.to_pylist(), strict=True)
            ]
            row += batch.num_rows
    instance = OperatorInstance(operator)
    found: list[Result] = []
    for arrival in sorted(arrivals, key=lambda one: one.timestamp):
        found += instance.process(arrival)
    found = sorted(found + instance.finish(), key=lambda one: one.timestamp)
    ends = np.array([one.timestamp * units for one in found], np.int64)
    columns = [times[0].values(ends)]
    columns += [_column(operator, field, found) for field in operator.schema]
    return pa.Table.from_arrays(columns, [BOUNDARIES[1], *operator.schema.names])


def _column(operator: OwnOperator, field: pa.Field, found: Sequence[Result]) -> pa.Array:
    """Return a column of what the functions have put out."""
    for one in found:
        if not isinstance(one.payload, Mapping) or field.name not in one.payload:
            raise UsageError(
                f"Operator {operator.name!r} put out {one.payload!r}, which has no "
                f"{field.name!r} of its schema."
            )
    try:
        return pa.array([one.payload[field.name] for one in found], field.type)
    except (pa.ArrowException, TypeError) as error:
        raise UsageError(
            f"Operator {operator.name!r} put out a {field.name!r} that is no {field.type}: {error}."
        ) from error
