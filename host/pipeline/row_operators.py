# SPDX-License-Identifier: Apache-2.0
"""Operations on each batch separately, and their fusion into one pass over it."""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
import inspect
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Array, Bools, Int64s
from host.errors import UnsupportedTypeError, UsageError, unknown_column
from host.pipeline.flags import Effect, Flag, Operation, Traits
from host.runtime import (
    ConduitExecStream,
    GraphError,
    Passing,
    Quantum,
    StreamParams,
    StreamResult,
    Transfer,
    plan_transfers,
)

__all__ = [
    "CopyCounters",
    "Filter",
    "FlatMap",
    "Fused",
    "FusedStage",
    "FusedStageParams",
    "Map",
    "MapBatches",
    "Peek",
    "Project",
    "Rows",
    "Stateless",
    "Submitted",
    "Update",
]

# Rows on their way through a fused pass: columns, and selections that are applied late.


@dataclass
class CopyCounters:
    """Counts of batches and copies.

    Attributes
    ----------
    batches_in, batches_out : int
        Batches that entered and left passes.
    copies : int
        Batches that were copied because a consumer writes into them.
    columns : int
        Columns that were written to new arrays, for a selection or to be written into.
    bytes : int
        Size of these columns in bytes.
    """

    batches_in: int = 0
    batches_out: int = 0
    copies: int = 0
    columns: int = 0
    bytes: int = 0

    def add(self, other: "CopyCounters") -> None:
        """Add the counts of ``other``."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class _Column:
    """A column to which the first ``level`` selections have been applied."""

    values: pa.Array | Array
    level: int


class Rows:
    """A batch on its way through a pass.

    A selection (:meth:`keep`) copies nothing. When a column is first read, all selections since the
    last read are applied to it at once; a column that is never read is never copied.

    Parameters
    ----------
    columns : mapping of str to Array or ndarray
        Columns of one length.
    num_rows : int
        Length of the columns.
    counters : CopyCounters
        Counters of copies.
    """

    __slots__ = ("_columns", "_composed", "_constant", "_owned", "_picks", "counters", "num_rows")

    def __init__(
        self, columns: Mapping[str, pa.Array | Array], num_rows: int, counters: CopyCounters
    ) -> None:
        self._columns = {name: _Column(values, 0) for name, values in columns.items()}
        self.num_rows = num_rows
        self.counters = counters
        self._owned: set[str] = set()  # columns that nobody else refers to
        self._constant = False
        self._picks: list[Int64s] = []  # per selection: the rows it kept of those before it
        self._composed: dict[int, Int64s] = {}

    @classmethod
    def of_batch(cls, batch: pa.RecordBatch, counters: CopyCounters) -> "Rows":
        """Return the rows of a batch that others may refer to."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return cls(columns, batch.num_rows, counters)

    def column(self, name: str) -> pa.Array:
        """Return a column as an Arrow array, with selections applied."""
        values = self._current(name)
        return pa.array(values) if isinstance(values, np.ndarray) else values

    def array(self, name: str) -> Array:
        """Return a column as a read-only NumPy array, with selections applied."""
        values = self._current(name)
        view: Array = (
            values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)
        ).view()
        view.flags.writeable = False
        return view

    def writable(self, name: str) -> Array:
        """Return a column as an array to write into; it is copied unless the rows own it.

        Raises
        ------
        GraphError
            If these rows are a constant reference.
        """
        self._require_own(f"Column {name!r} is written into", "declare that it mutates its input")
        column = self._known(name)
        if name in self._owned and column.level == len(self._picks):
            owned: Array = column.values
            return owned
        values = column.values
        if isinstance(values, pa.Array):
            if values.null_count:
                raise UsageError(
                    f"Column {name!r} has nulls, so it cannot be written into as an array; fill "
                    f"them first."
                )
            values = values.to_numpy(zero_copy_only=False)
        picked = self._selection(column.level)
        fresh = values.copy() if picked is None else values.take(picked)
        self._count(fresh.nbytes)
        self._columns[name] = _Column(fresh, len(self._picks))
        self._owned.add(name)
        return fresh

    def keep(self, mask: pa.Array | Bools) -> None:
        """Select the rows for which ``mask`` is true (null counts as false)."""
        self._require_own("Rows are selected", "do that with rows.handed_on()")
        kind = mask.dtype if isinstance(mask, np.ndarray) else mask.type
        if str(kind) != "bool" or len(mask) != self.num_rows:
            raise UsageError(
                f"A condition must give {self.num_rows} booleans, one for each row, not "
                f"{len(mask)} of type {kind}."
            )
        if not isinstance(mask, np.ndarray):
            filled = pc.fill_null(mask, False) if mask.null_count else mask
            mask = filled.to_numpy(zero_copy_only=False)
        # Row numbers are faster than masks to find, to compose and to take by.
        picked = np.flatnonzero(mask)
        if len(picked) < self.num_rows:
            self._picks.append(picked)
            self._composed.clear()
            self.num_rows = len(picked)

    def put(self, name: str, values: pa.Array | Array) -> None:
        """Add a column, or replace one in its position."""
        self._require_own(f"Column {name!r} is put", "do that with rows.handed_on()")
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if len(values) != self.num_rows:
            raise UsageError(
                f"Column {name!r} must have {self.num_rows} values, one for each row, not "
                f"{len(values)}."
            )
        self._columns[name] = _Column(values, len(self._picks))
        self._owned.discard(name)

    def project(self, columns: Mapping[str, str]) -> "Rows":
        """Return these rows with only the columns ``{new name: old name}``."""
        result = self.handed_on()
        result._columns = {new: self._known(old) for new, old in columns.items()}
        return result

    def copy(self) -> "Rows":
        """Return rows that may be written into; a column is copied when first written into."""
        self.counters.copies += 1
        return self.handed_on()

    def handed_on(self) -> "Rows":
        """Return the same rows for selecting and adding columns; existing columns stay shared."""
        result = Rows({}, self.num_rows, self.counters)
        result._columns = dict(self._columns)
        result._picks = list(self._picks)
        result._composed = dict(self._composed)
        return result

    def read_only(self) -> "Rows":
        """Return the same rows as a constant reference; columns read by one are read for both."""
        result = Rows({}, self.num_rows, self.counters)
        result._columns, result._picks = self._columns, self._picks
        result._composed, result._constant = self._composed, True
        return result

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch."""
        columns = [self.column(name) for name in self._columns]
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * self.num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(columns, names=list(self._columns))

    def _require_own(self, act: str, remedy: str) -> None:
        if self._constant:
            raise GraphError(
                f"{act}, but these rows are a constant reference; the operator must {remedy}."
            )

    def _known(self, name: str) -> _Column:
        try:
            return self._columns[name]
        except KeyError:
            raise unknown_column(name, list(self._columns)) from None

    def _current(self, name: str) -> pa.Array | Array:
        column = self._known(name)
        picked = self._selection(column.level)
        if picked is None:
            return column.values
        if isinstance(column.values, np.ndarray):
            values: pa.Array | Array = column.values.take(picked)
        else:
            values = column.values.take(pa.array(picked))
        self._count(values.nbytes)
        self._columns[name] = _Column(values, len(self._picks))
        return values

    def _selection(self, level: int) -> Int64s | None:
        """Return all selections from ``level`` on as one; None if there is none."""
        later = self._picks[level:]
        if len(later) < 2:
            return later[0] if later else None
        if level not in self._composed:
            rest = self._selection(level + 1)
            assert rest is not None
            self._composed[level] = later[0].take(rest)
        return self._composed[level]

    def _count(self, size: int) -> None:
        self.counters.columns += 1
        self.counters.bytes += size


# The base class of operations on each batch.

#: Output of an operator: rows, or None where it has worked without having rows yet.
Submitted: TypeAlias = Generator[Rows | None, None, None]


class Stateless(Operation):
    """An operation on each batch separately: it submits rows that depend on received rows alone.

    Attributes
    ----------
    clears : Flag
        Flags that the operation clears for any input.
    mutates_input : bool
        Whether the input port is mutating: the operator may write into the rows that it receives.
    mutable_output : bool
        Whether the output port is mutating: the operator gives up the rows that it submits.
    """

    clears = Flag.NONE
    mutates_input = False
    mutable_output = True

    def kept(self, column: str) -> str | None:
        """Return what a column is called in the output; None if it changes, or is left out.

        What is known of a column that changes is lost. By default, no column does.
        """
        return column

    def effect(self, traits: Traits) -> Effect:
        clear = self.clears
        if not self._kept_order(traits):
            clear |= Flag.SORTED
        if any(self.kept(name) is None for name in traits.distinct_by):
            clear |= Flag.DISTINCT
        return Effect(clear=clear)

    def traits(self, traits: Traits) -> Traits:
        after = traits.after(self.effect(traits))
        ranges = ((self.kept(old), known) for old, known in after.ranges.items())
        return replace(
            after,
            sorted_by=self._kept_order(traits) if after.sorted_by else (),
            distinct_by=tuple(
                name for old in after.distinct_by if (name := self.kept(old)) is not None
            ),
            ranges={name: known for name, known in ranges if name is not None},
        )

    def _kept_order(self, traits: Traits) -> tuple[str, ...]:
        """Return the leading sort columns that remain, under their new names."""
        kept: list[str] = []
        for old in traits.sorted_by:
            new = self.kept(old)
            if new is None:
                break
            kept.append(new)
        return tuple(kept)

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


# The operators of the kit.


def _columns_of(function: Callable[..., Any], columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns that a function takes: the given ones, or its parameters' names."""
    if columns is not None:
        return tuple(columns)
    parameters = inspect.signature(function).parameters.values()
    names = tuple(each.name for each in parameters if each.default is inspect.Parameter.empty)
    if not names or any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        raise UsageError(
            f"Function {_name(function)} does not say which columns it takes; name its parameters "
            f"after them, or give columns=[...]."
        )
    return names


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


class Filter(Stateless):
    """Submit the rows for which a function of columns is true.

    Parameters
    ----------
    function : callable
        Takes Arrow arrays and returns booleans (Arrow or NumPy); null counts as False.
    columns : sequence of str, optional
        Columns that the function takes; by default those named like its parameters.
    """

    clears = Flag.SIZED

    def __init__(self, function: Callable[..., Any], columns: Sequence[str] | None = None) -> None:
        self._function = function
        self._columns = _columns_of(function, columns)

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        rows.keep(self._function(*(rows.column(name) for name in self._columns)))
        yield rows if rows.num_rows else None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return f"filter({', '.join(self._columns)})"


class Map(Stateless):
    """Add or replace a column with the values of a function of columns.

    Parameters
    ----------
    name : str
        Name of the column.
    function : callable
        Takes Arrow arrays and returns as many values (Arrow or NumPy). It is also called with
        empty arrays, to find the type.
    columns : sequence of str, optional
        Columns that the function takes; by default those named like its parameters.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], columns: Sequence[str] | None = None
    ) -> None:
        self.name = name
        self._function = function
        self._columns = _columns_of(function, columns)

    def kept(self, column: str) -> str | None:
        return None if column == self.name else column

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        rows.put(self.name, self._function(*(rows.column(name) for name in self._columns)))
        yield rows

    def __str__(self) -> str:
        return f"map({self.name} <- {', '.join(self._columns)})"


class Project(Stateless):
    """Submit some of the columns, possibly under other names.

    Parameters
    ----------
    columns : mapping of str to str
        Old names by new names, in the wanted order.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = dict(columns)

    def kept(self, column: str) -> str | None:
        return next((new for new, old in self.columns.items() if old == column), None)

    def apply(self, rows: Rows) -> Submitted:
        yield rows.project(self.columns)

    def __str__(self) -> str:
        names = (new if new == old else f"{new} = {old}" for new, old in self.columns.items())
        return f"select({', '.join(names)})"


class Update(Stateless):
    """Operation that changes a column in place.

    Parameters
    ----------
    name : str
        Name of a column of numbers, dates or times, without nulls.
    function : callable
        Takes the column as a NumPy array and writes into it; its result is ignored.
    """

    mutates_input = True

    def __init__(self, name: str, function: Callable[[Any], Any]) -> None:
        self.name = name
        self._function = function

    def kept(self, column: str) -> str | None:
        return None if column == self.name else column

    def apply(self, rows: Rows) -> Submitted:
        self._function(rows.writable(self.name))
        yield rows

    def schema(self, schema: pa.Schema) -> pa.Schema:
        kind = schema.field(self.name).type
        if not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
            raise UnsupportedTypeError(self.name, kind, "numbers, dates, times")
        values = np.zeros(0, kind.to_pandas_dtype())
        index = schema.get_field_index(self.name)
        return schema.set(index, pa.field(self.name, pa.array(values).type))

    def __str__(self) -> str:
        return f"update({self.name})"


class _Replacing(Stateless):
    """Replaces batches by others: nothing but the order of the rows stays known."""

    clears = Flag.SIZED | Flag.SORTED | Flag.DISTINCT

    def kept(self, column: str) -> str | None:
        del column  # what is known of every column is lost
        return None


class MapBatches(_Replacing):
    """Replace each batch by another, with any number of rows.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch and returns one. It is also called with an empty one, to find the
        schema.
    """

    def __init__(self, function: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        self._function = function

    def apply(self, rows: Rows) -> Submitted:
        yield Rows.of_batch(self._function(rows.batch()), rows.counters)

    def __str__(self) -> str:
        return f"map_batches({_name(self._function)})"


class FlatMap(_Replacing):
    """Operation that replaces each batch by any number of others.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch and returns an iterable of them, which is read only as far as batches
        are wanted. A generator that is stopped early is closed.
    output : Schema
        Schema of all returned batches.
    """

    def __init__(
        self,
        function: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]],
        output: pa.Schema,
    ) -> None:
        self._function = function
        self._output = output

    def apply(self, rows: Rows) -> Submitted:
        batches = iter(self._function(rows.batch()))
        try:
            yield from self._checked(batches, rows.counters)
        finally:
            # Close a generator that is stopped early now, instead of when it is collected.
            if isinstance(batches, Generator):
                batches.close()

    def _checked(self, batches: Iterator[pa.RecordBatch], counters: CopyCounters) -> Submitted:
        for batch in batches:
            if batch.schema != self._output:
                raise UsageError(
                    f"Function {_name(self._function)} of flat_map returned columns "
                    f"{batch.schema.to_string()!r}, not the declared "
                    f"{self._output.to_string()!r}."
                )
            yield Rows.of_batch(batch, counters) if batch.num_rows else None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return self._output

    def __str__(self) -> str:
        return f"flat_map({_name(self._function)})"


class Peek(Stateless):
    """Pass each batch to a function, which may keep it, and pass the rows on.

    Parameters
    ----------
    function : callable
        Takes a RecordBatch; its result is ignored.
    """

    def __init__(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        self._function = function

    def apply(self, rows: Rows) -> Submitted:
        rows = rows.handed_on()
        self._function(rows.batch())
        yield rows

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def __str__(self) -> str:
        return f"peek({_name(self._function)})"


# Fuse operators into one pass: rows are pulled through all of them by nested generators.

#: Function that yields the results of rows.
_Pull: TypeAlias = Callable[[Rows], Submitted]


class Fused:
    """Operators that follow one another, as one function of rows.

    As in a fused processing element, whether rows are copied between two operators depends only on
    their ports, and is decided here once.

    Unlike there, rows are pulled. :attr:`pull` works only until the next rows leave the pass,
    so a reader that has enough stops every operator where it is.

    Parameters
    ----------
    operators : sequence of Stateless
        The operators; at least one.

    Attributes
    ----------
    pull : callable
        Takes rows and returns a generator of the rows that leave the pass; it yields None where
        there are no rows yet. Closing the generator closes all operators.
    transfers : list of (sender, receiver, transfer)
        The decision for each connection, in the order of the calls.
    """

    pull: _Pull

    def __init__(self, operators: Sequence[Stateless]) -> None:
        self.transfers: list[tuple[str, str, Transfer]] = []
        sender, mutable = "input", False
        for number, operator in enumerate(operators):
            (transfer,) = plan_transfers(mutable, [operator.mutates_input])
            self.transfers.append((sender, str(operator), transfer))
            target = _target(operator, transfer.passing)
            self.pull = _followed(self.pull, target) if number else target
            sender, mutable = str(operator), operator.mutable_output


def _target(operator: Stateless, passing: Passing) -> _Pull:
    """Return the function that calls ``operator`` with rows passed as decided."""
    apply = operator.apply
    if passing is Passing.COPY:
        return lambda rows: apply(rows.copy())
    if passing is Passing.CONSTANT:
        return lambda rows: apply(rows.read_only())
    return apply


def _followed(target: _Pull, behind: _Pull) -> _Pull:
    """Return the function that passes rows through an operator and then those behind it."""

    def pull(rows: Rows) -> Submitted:
        with closing(target(rows)) as pulled:
            for submitted in pulled:
                if submitted is None:
                    yield None
                else:
                    yield from behind(submitted)

    return pull


# Fused operators as a stream: filter, project, map and flat-map in one pass over each batch.


@dataclass(frozen=True)
class FusedStageParams(StreamParams):
    """Parameters of :class:`FusedStage`.

    Parameters
    ----------
    operators : sequence of Stateless
        Operators, which are applied one after another.
    counters : CopyCounters
        Counters of batches and copies.
    ahead : bool
        Whether to produce several batches while there is room for them. If not, a batch is made
        only when it is wanted.
    halves : bool
        Whether a batch for which an operator raises is tried again in halves, so that only a row
        for which it raises is lost. What a row has already brought is kept.
    """

    operators: Sequence[Stateless]
    counters: CopyCounters = field(default_factory=CopyCounters)
    ahead: bool = True
    halves: bool = False


class FusedStage(ConduitExecStream[FusedStageParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that pulls every input batch through all operators and makes a batch of the results.

    No batch is made between operators. Closing the stream closes the generators in its operators
    wherever they are. If an operator raises, its batch has been consumed, and the next execution
    continues behind the batch; with ``halves``, behind the row.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._pulled: Submitted | None = None
        self._taken: list[pa.RecordBatch] = []  # what has been consumed and waits, last one first

    def prepare(self, params: FusedStageParams) -> None:
        super().prepare(params)
        self.fused = Fused(params.operators)

    def execute(self, quantum: Quantum) -> StreamResult:
        allowed = quantum if self.params.ahead else Quantum(1)  # which is one batch
        return self.hand_on(allowed, self._next)

    def _next(self) -> pa.RecordBatch | StreamResult:
        """Return the next result of a pass, without a row if there is none, or none yet."""
        if self._pulled is None:
            if not self._taken:
                result = self.precheck_conduit_buffers()
                if result is not StreamResult.YIELD:
                    return result
                self._taken.append(self.input.access().slice(0, self.output.provide()))
                self.input.consume(self._taken[0].num_rows)
                self.params.counters.batches_in += 1
            self._batch = self._taken.pop()
            self.steps += 1
            self._has_result = False
            self._pulled = self.fused.pull(Rows.of_batch(self._batch, self.params.counters))
        try:
            rows = next(self._pulled)
        except BaseException as end:
            self._pulled = rows = None
            middle = self._batch.num_rows // 2
            if not isinstance(end, StopIteration):
                if not self.params.halves or not middle or self._has_result:
                    raise
                self._taken += [self._batch.slice(middle), self._batch.slice(0, middle)]
        if rows is None or not rows.num_rows:
            return self._batch.slice(0, 0)
        self._has_result = True
        self.params.counters.batches_out += 1
        return rows.batch()

    def close_impl(self) -> None:
        """Stop the current pass, and close the generators that run in it."""
        pulled, self._pulled = self._pulled, None
        self._taken.clear()
        if pulled is not None:
            pulled.close()
