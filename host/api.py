# SPDX-License-Identifier: Apache-2.0
"""The functions that a program calls: rows in, an Arrow table or a reader of batches out.

Rows are whatever Python libraries exchange by Arrow's stream interface (``__arrow_c_stream__``:
Polars, DuckDB, pandas, DataFusion, pyarrow), batches, or the name of a file. What is asked is
written in the words of a query, which :mod:`host.query.words` lists, or as a query.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import pyarrow as pa

from host.devices import Device, device_kind, open_device
from host.devices.bundles import choose_device
from host.errors import UsageError
from host.files.reading import Dataset
from host.operators.asof import AsofJoin, AsofStream
from host.operators.many import ManyQuery, join_tables_of_many
from host.operators.matches import aggregate_matches
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.overlap import overlap_query
from host.operators.own import OwnOperator, own_results, require_software
from host.operators.windowed import WindowedOperator
from host.pipeline import Pipeline
from host.pipeline.inputs import OrderedInput
from host.query.queries import AggregateQuery, Aggregates, AsofQuery, Query
from host.query.tables import Input, Supply, as_table
from host.query.words import Columns, Equalities, Length, column_pair
from host.session.join import Join

__all__ = [
    "Rows",
    "aggregate",
    "asof_join",
    "join",
    "join_aggregate",
    "join_many",
    "operate",
    "overlap_join",
]


class ArrowStream(Protocol):
    """Rows that another library hands over by Arrow's stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


#: What the functions take: a table of any library, batches, or a file, a folder or a pattern.
Rows: TypeAlias = (
    ArrowStream | pa.RecordBatch | Sequence[pa.RecordBatch] | Iterator[pa.RecordBatch] | str | Path
)

Asked = TypeVar("Asked", Query, AsofQuery, AggregateQuery)


@overload
def join(
    left: Rows,
    right: Rows,
    query: Query | None = ...,
    *,
    device: Device | str | None = ...,
    build: bool = ...,
    reader: Literal[False] = ...,
    **words: Any,
) -> pa.Table: ...
@overload
def join(
    left: Rows,
    right: Rows,
    query: Query | None = ...,
    *,
    device: Device | str | None = ...,
    build: bool = ...,
    reader: Literal[True],
    **words: Any,
) -> pa.RecordBatchReader: ...
def join(
    left: Rows,
    right: Rows,
    query: Query | None = None,
    *,
    device: Device | str | None = None,
    build: bool = False,
    reader: bool = False,
    **words: Any,
) -> pa.Table | pa.RecordBatchReader:
    """Join rows over a sliding window.

    The result has the left columns, then the right ones, in the order of arrival of the later row
    of each pair unless the ordering is another. Files and inputs that are declared sorted are read
    in pieces, and only the window is held in memory.

    Parameters
    ----------
    left, right : Rows
        The inputs.
    query : Query, optional
        What is asked, in place of words.
    device : Device or str, optional
        An open device, or the address of one: ``"sim:"`` is the simulated accelerator that suits
        the query. By default, that of ``SPLITJOIN_DEVICE``, or else the software engine.
    build : bool
        Whether to build a bundle for ``"sim:"`` where none here is large enough, or one that
        decides ``where`` if nothing else bounds the pairs on both sides.
    reader : bool
        Whether batches are returned as they are found, in place of a table. The reader holds the
        device until it is read to its end, closed or forgotten.
    words
        Those of :class:`~host.query.queries.Query`: ``time``, ``on``, ``band``, ``where``,
        ``within`` or ``rows``, ``how`` and so on. Rows are joined with themselves if both inputs
        are one; ``pairs="once"`` then gives every two rows once.

    Returns
    -------
    pa.Table or pa.RecordBatchReader
        The result.

    Raises
    ------
    UsageError
        If a word, an input or a column will not do.
    CapacityError
        If the device has no room for the window.

    Examples
    --------
    >>> pairs = join(trades, quotes, time="time", on="symbol", within="5s")
    """
    asked = _asked(Query, query, words)
    sides = _sides(left, right, asked)
    return _joined(*sides, _in_order(asked, left, right), device, build=build, reader=reader)


def join_many(
    inputs: Mapping[str, Rows],
    *,
    time: str | Sequence[str],
    within: Length,
    on: str | Sequence[str | Sequence[str]] | None = None,
    advance: Length | None = None,
    where: str | None = None,
    device: Device | str | None = None,
) -> pa.Table:
    """Join rows of two, three or more inputs over a window.

    A result has one row of each input, and any two of its rows are at most ``within`` apart in
    time. Inputs are joined one after another in the order in which they are given, so the two that
    pair least should come first. Inputs and results are held in memory.

    Parameters
    ----------
    inputs : mapping of str to Rows
        The inputs by the names that conditions and results have.
    time : str or sequence of str
        The columns of time, of one type: one name, or one for each input.
    within : int, Duration, timedelta or str
        How far apart the rows of a result may be.
    on : str or list, optional
        Columns that must be equal in all inputs: a name, or a list of names and of lists with one
        for each input.
    advance : int, Duration, timedelta or str, optional
        Windows in common, ``[n * advance, n * advance + within)``: one of them has all rows of a
        result.
    where : str, optional
        Any other condition, such as ``"a.x < b.y and abs(b.z - c.z) <= 3"``, in the language of
        :class:`~host.query.queries.Query`. Each of its parts is asked where the last of its inputs
        is joined.
    device : Device or str, optional
        As for :func:`join`, for every join.

    Returns
    -------
    pa.Table
        The columns of all inputs, called ``input.column``, in the order in which the latest row of
        each result arrives, then by its rows of the first input, of the second one and so on.

    Raises
    ------
    UsageError
        If a word, an input or a column will not do.
    CapacityError
        If a device has no room for the window.

    Examples
    --------
    >>> join_many({"a": trades, "b": quotes, "c": news}, time="time", on="symbol", within="5s")
    """
    if not isinstance(inputs, Mapping):
        raise UsageError(
            f"join_many takes a mapping of names to inputs, as in {{'a': trades, 'b': quotes}}, "
            f"not a {type(inputs).__name__}."
        )
    query = ManyQuery.of(
        list(inputs), time=time, within=within, on=on, advance=advance, where=where
    )
    tables = {
        name: as_table(_as_they_lie(rows, column, name))
        for (name, rows), column in zip(inputs.items(), query.time, strict=True)
    }

    def opened(step: Query) -> AbstractContextManager[Device]:
        if isinstance(device, Device):
            return nullcontext(device)
        return open_device(choose_device(device, step).uri)

    return join_tables_of_many(tables, query, opened)


def overlap_join(
    left: Rows,
    right: Rows,
    *,
    left_interval: tuple[str, str],
    right_interval: tuple[str, str] | None = None,
    on: Equalities = None,
    touching: bool = True,
    device: Device | str | None = None,
    reader: bool = False,
    **words: Any,
) -> pa.Table | pa.RecordBatchReader:
    """Join the rows whose intervals overlap.

    Parameters
    ----------
    left, right : Rows
        The inputs.
    left_interval, right_interval : (str, str)
        Columns with the start and the end, inclusive; the right ones may be called like the left
        ones.
    on : str or list, optional
        Columns that must be equal.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    device, reader
        As for :func:`join`.
    words
        Further words of :class:`~host.query.queries.Query`, such as ``how``.

    Returns
    -------
    pa.Table or pa.RecordBatchReader
        The result.

    Raises
    ------
    UsageError
        If a word, an input or a column will not do, or an interval ends before it starts.
    """
    ours = column_pair(left_interval, "left_interval")
    theirs = ours if right_interval is None else column_pair(right_interval, "right_interval")
    tables = (
        as_table(_as_they_lie(left, ours[0], "left")),
        as_table(_as_they_lie(right, theirs[0], "right")),
    )
    query = overlap_query(tables, ours, theirs, on=on, touching=touching, **words)
    return _joined(*tables, query, device, reader=reader)


def asof_join(
    left: Rows,
    right: Rows,
    query: AsofQuery | None = None,
    *,
    device: Device | str | None = None,
    reader: bool = False,
    **words: Any,
) -> pa.Table | pa.RecordBatchReader:
    """Join each left row with the right row that is closest to it in time.

    The result has the left columns, then the right ones, in the order of the left times.

    Parameters
    ----------
    left, right : Rows
        The inputs.
    query : AsofQuery, optional
        What is asked, in place of words.
    device : Device or str, optional
        An open device, or the address of one, that finds the right rows. By default, the host does.
    reader : bool
        As for :func:`join`.
    words
        Those of :class:`~host.query.queries.AsofQuery`: ``time``, ``on``, ``direction``,
        ``within`` and so on.

    Returns
    -------
    pa.Table or pa.RecordBatchReader
        The result.

    Raises
    ------
    UsageError
        If a word, an input or a column will not do.

    Examples
    --------
    >>> priced = asof_join(trades, quotes, time="time", on="symbol", within="5s")
    """
    asked = _asked(AsofQuery, query, words)
    sides = _sides(left, right, asked)
    with ExitStack() as held:
        if device is None and _in_order(asked, left, right).sorted:
            supplies = [Supply(rows) for rows in sides]
            stream = AsofStream(supplies[0].schema, supplies[1].schema, asked)
            batches = stream.batches(supplies[0].batches(), supplies[1].batches())
            return _result(stream.schema, batches, held, reader=reader)
        if device is not None and not isinstance(device, Device):
            device = held.enter_context(open_device(device))
        found = AsofJoin(as_table(sides[0]), as_table(sides[1]), asked, device)
        return _result(found.schema, found.batches(), held.pop_all(), reader=reader)


def aggregate(
    rows: Rows,
    query: AggregateQuery | None = None,
    *,
    device: str | None = None,
    reader: bool = False,
    **words: Any,
) -> pa.Table | pa.RecordBatchReader:
    """Aggregate rows over windows of time, by keys.

    The result has the boundaries of the windows, the keys and the aggregates, in the order of
    windows and keys. Rows that are declared sorted are read in pieces.

    Parameters
    ----------
    rows : Rows
        The input.
    query : AggregateQuery, optional
        What is asked, in place of words.
    device : str, optional
        The address of an accelerator of aggregates: ``"sim:BUNDLE"``, or ``"sim:"`` for one that is
        built for the query. By default, the host.
    reader : bool
        As for :func:`join`.
    words
        Those of :class:`~host.query.queries.AggregateQuery`: ``time``, ``window``, ``advance``,
        ``on``, ``aggregates`` and ``sorted``.

    Returns
    -------
    pa.Table or pa.RecordBatchReader
        The result.

    Raises
    ------
    UsageError
        If a word, the input or a column will not do.

    Examples
    --------
    >>> aggregate(trades, time="time", window="1h", on="symbol", aggregates={"n": "count"})
    """
    asked = _asked(AggregateQuery, query, words)
    if device is not None:
        device_kind(device)
    if isinstance(rows, (str, Path)):
        source = OrderedInput(
            Dataset(rows), asked.time, "input", is_sorted=asked.sorted,
            columns=[*asked.on, *asked.columns],
        ).pipeline()  # fmt: skip
    else:
        given = _rows(rows, asked.time, asked.sorted, "given")
        if isinstance(given, pa.RecordBatchReader) and asked.sorted:
            source = Pipeline.of_batches(lambda: given, given.schema)
        else:
            source = Pipeline.of_table(as_table(given))
    execution = source.aggregate(asked, device=device).execution()
    return _result(execution.schema, execution.batches(), ExitStack(), reader=reader)


def operate(
    rows: Rows,
    operator: WindowedOperator | OwnOperator,
    right: Rows | None = None,
    *,
    time: Columns = "timestamp",
    unit: Length | None = None,
    device: str | None = None,
) -> pa.Table:
    """Run a windowed operator on rows: one that is described as data, or one of Python functions.

    The result has the boundaries of the windows, the parts of the keys, and what the operator
    gives, in the order of windows and keys. Rows may come in any order; they are taken in that of
    their times, left ones first on a tie.

    Parameters
    ----------
    rows, right : Rows
        The inputs, with a column for each field of the operator; the right one if it has two.
    operator : WindowedOperator or OwnOperator
        What is computed. One of functions is run a row at a time.
    time : str or (str, str)
        Column of time, which the operator calls ``timestamp``.
    unit : int, timedelta or str, optional
        How long a unit of the operator's time is: ``"1s"`` for dates and timestamps, a number for
        integers (by default 1).
    device : str, optional
        The address of an accelerator for the described operator: ``"sim:BUNDLE"``, or ``"sim:"``
        for one that is built for it. By default, the software engine.

    Returns
    -------
    pa.Table
        The result.

    Raises
    ------
    UsageError
        If a word, an input, a column or the device will not do.
    """
    given = [rows] if right is None else [rows, right]
    names = column_pair(time, "time")
    inputs = [
        _as_they_lie(one, names[side], ("left", "right")[side]) for side, one in enumerate(given)
    ]
    if isinstance(operator, OwnOperator):
        require_software(operator, device)
        return own_results(inputs, operator, time, unit)
    return operate_tables(inputs, OperatorQuery(operator, time, unit), device)


def join_aggregate(
    left: Rows,
    right: Rows,
    query: Query | None = None,
    *,
    aggregates: Aggregates,
    device: Device | str | None = None,
    **words: Any,
) -> pa.Table:
    """Give each left row with aggregates of the right rows that a join pairs it with.

    Parameters
    ----------
    left, right, query, device, words
        As for :func:`join`; ``how``, ``suffix`` and ``ordering`` do not matter.
    aggregates : mapping of str to Aggregate, str or (str, str)
        What is computed of the right rows, by the name of its column: ``"count"``, or one of count,
        sum, min, max and mean of a right column, as ``"sum:price"``.

    Returns
    -------
    pa.Table
        The left columns, then the aggregates; the left rows in their order.

    Raises
    ------
    UsageError
        If a word, an input or a column will not do.
    """
    asked = _asked(Query, query, words)
    tables = [as_table(rows) for rows in _sides(left, right, asked)]
    with ExitStack() as held:
        return aggregate_matches(
            tables[0], tables[1], asked, aggregates, _opened(device, asked, held)
        )


def _asked(kind: type[Asked], query: Asked | None, words: dict[str, Any]) -> Asked:
    """Return the query that a caller gives, or has written in words."""
    if query is None:
        return kind(**words)
    if not isinstance(query, kind):
        raise UsageError(
            f"The third argument is a {kind.__name__}, not {query!r}; write words by their names, "
            f"as in time='t'."
        )
    if words:
        raise UsageError(
            f"A query is given, and so is {next(iter(words))}; use dataclasses.replace to ask for "
            f"something else."
        )
    return query


def _sides(left: Rows, right: Rows, asked: Query | AsofQuery) -> tuple[Input, Input]:
    """Return the rows of both inputs of a query; those that are the same are read once."""
    of_left, of_right = asked.time
    is_sorted = bool(asked.sorted)
    is_path = isinstance(left, (str, Path))
    if (is_path and left == right and of_left == of_right) or (left is right and not is_path):
        rows = _rows(left, of_left, is_sorted, "left")
        return rows, rows
    return _rows(left, of_left, is_sorted, "left"), _rows(right, of_right, is_sorted, "right")


def _in_order(asked: Asked, *sides: Rows) -> Asked:
    """Return a query of files, whose rows come in the order of time, as one of sorted inputs."""
    return replace(asked, sorted=True) if all(isinstance(x, (str, Path)) for x in sides) else asked


def _rows(rows: Rows, time: str, is_sorted: bool, side: str) -> Input:
    """Return the rows of an input as a table or as batches."""
    if isinstance(rows, (str, Path)):
        return OrderedInput(Dataset(rows), time, side, is_sorted=is_sorted).reader()
    if isinstance(rows, (pa.Table, pa.RecordBatchReader)):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__"):
        try:
            stream = pa.RecordBatchReader.from_stream(rows)
        except pa.ArrowInvalid as error:
            raise UsageError(
                f"The {side} rows, a {type(rows).__name__}, have no columns: {error}; give a table."
            ) from error
        # Read before the other input is opened: a connection of DuckDB has one open result.
        return stream if is_sorted else stream.read_all()
    if isinstance(rows, (list, tuple, Iterator)):
        return rows
    raise UsageError(
        f"The {side} rows are a {type(rows).__name__}; give a table or a reader of pyarrow, a "
        f"frame of a library that has __arrow_c_stream__ (Polars, DuckDB, pandas from 2.2 on), "
        f"batches, or the name of a file."
    )


def _as_they_lie(rows: Rows, time: str, side: str) -> Input:
    """Return the rows of an input, those of files in the order of the files."""
    if isinstance(rows, (str, Path)):
        dataset = Dataset(rows)
        return pa.RecordBatchReader.from_batches(dataset.schema, dataset.batches())
    return _rows(rows, time, False, side)


def _opened(
    device: Device | str | None, query: Query, held: ExitStack, *, build: bool = False
) -> Device:
    """Return the device of a query, which is closed with ``held`` if it is opened here."""
    if isinstance(device, Device):
        return device
    return held.enter_context(open_device(choose_device(device, query, build=build).uri))


def _joined(
    left: Input,
    right: Input,
    query: Query,
    device: Device | str | None,
    *,
    build: bool = False,
    reader: bool,
) -> pa.Table | pa.RecordBatchReader:
    with ExitStack() as held:
        found = Join(left, right, query, _opened(device, query, held, build=build))
        return _result(found.schema, found.batches(), held.pop_all(), reader=reader)


def _result(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], held: ExitStack, *, reader: bool
) -> pa.Table | pa.RecordBatchReader:
    """Return batches in the form that is asked for; ``held`` is closed behind the last one."""
    if reader:
        serving = _serving(batches, held)
        next(serving)
        return pa.RecordBatchReader.from_batches(schema, serving)
    with held:
        return pa.Table.from_batches(batches, schema)


def _serving(
    batches: Iterator[pa.RecordBatch], held: ExitStack
) -> Generator[pa.RecordBatch, None, None]:
    """Yield batches after a first value, behind which closing the generator closes ``held``."""
    with held:
        yield None  # taken by the caller
        yield from batches
