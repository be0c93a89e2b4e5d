# SPDX-License-Identifier: Apache-2.0
"""The join of two, three or more inputs over a window, as a plan of joins of two inputs.

A result has one row of each input, all of which lie within the window of one another. Inputs are
joined in the order in which they are given: the first two, then what is found with the third, and
so on. A result of a step stands for its earliest and its latest row, which is all that a later step
asks of its time. Steps hand row numbers on, and only the columns that later steps compare.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.arrays import Int64s, inverse
from host.columns.kinds import column_type, contiguous, integer_view
from host.columns.times import OrderCheck, require_temporal
from host.devices import Device
from host.errors import ExpressionError, UsageError
from host.expressions import parsed, place_in
from host.query.conditions import Columns, Condition, read_column
from host.query.queries import Query, window_in_common
from host.query.tables import require_column, without_views
from host.query.words import Length, Span, as_span, as_text, listed_columns
from host.session.join import Join

__all__ = [
    "EARLIEST",
    "LATEST",
    "ManyQuery",
    "join_tables_of_many",
]


#: The times of what a step has found, among its columns. No other column has such a name, as those
#: have a point.
EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True)
class ManyQuery:
    """A join of several inputs; make one with :meth:`of`.

    Parameters
    ----------
    names : tuple of str
        What the inputs are called, in the order in which they are joined.
    time : tuple of str
        The column of each input that rows arrive by.
    on : tuple of tuple of str
        Columns that must be equal, with one of each input.
    within : int or Duration
        How far apart in time any two rows of a result may be; with ``advance``, the length of the
        windows of which one has all rows of a result.
    advance : int, Duration or None
        How far apart these windows are.
    where : tuple of Condition
        For each step, what is asked of ``l``, what was found before, and ``r``, the next input;
        columns of ``l`` are called ``input.column``.
    """

    names: tuple[str, ...]
    time: tuple[str, ...]
    on: tuple[tuple[str, ...], ...]
    within: Span
    advance: Span | None
    where: tuple[Condition | None, ...]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        time: str | Sequence[str],
        within: Length,
        on: str | Sequence[str | Sequence[str]] | None = None,
        advance: Length | None = None,
        where: str | None = None,
    ) -> "ManyQuery":
        """Check what is asked.

        Parameters
        ----------
        names : sequence of str
            What the inputs are called.
        time : str or sequence of str
            The columns of time: one name, or one for each input.
        within, advance : int, Duration, timedelta or str
            As for :class:`~host.query.queries.Query`, of all rows of a result.
        on : str or list, optional
            Columns that must be equal in all inputs: a name, or a list of names and of lists with
            one for each input.
        where : str, optional
            Any other condition on columns, which are called ``input.column``.

        Raises
        ------
        UsageError
            If a word will not do.
        """
        if len(names) < 2:
            raise UsageError(f"A join needs two inputs or more, not {len(names)}.")
        taken = [
            name
            for name in names
            if not (isinstance(name, str) and name.isidentifier()) or list(names).count(name) > 1
        ]
        if taken:
            raise UsageError(
                f"Inputs have names of their own, which are words, as conditions have them; "
                f"{taken[0]!r} is none; choose another one."
            )
        equal = tuple(_of_each(names, given, "on") for given in listed_columns(on, "on"))
        span = as_span(within, "within")
        # A query of two inputs checks the windows.
        asked = Query(time="time", within=span, advance=advance)
        return cls(
            tuple(names),
            _of_each(names, time, "time"),
            equal,
            span,
            asked.advance,
            _conditions_of(tuple(names), where),
        )

    def step(self, number: int) -> Query:
        """Return the join with the input of a number, from 1 on, of what was found before."""
        time = self.time[number]
        first = self.names[0]
        return Query(
            time=(LATEST, time),
            within=self.within,
            on=[(f"{first}.{columns[0]}", columns[number]) for columns in self.on],
            band=[(EARLIEST, time, -self.within, self.within)],
            where=self._asked(number),
        )

    def _asked(self, number: int) -> Condition | None:
        """Return what must hold beside equalities: that one window has all rows, and ``where``."""
        asked = self.where[number]
        if self.advance is None:
            return asked
        time = f"r[{self.time[number]!r}]"
        low, high = f"min(l.{EARLIEST}, {time})", f"max(l.{LATEST}, {time})"
        shared = window_in_common(f"{high} - {low}", low, self.within, self.advance)
        return shared if asked is None else asked & shared

    def columns(self, number: int) -> tuple[str, ...]:
        """Return the columns of an input that steps compare, time first."""
        name = self.names[number]
        named = [self.time[number], *(columns[number] for columns in self.on)]
        for step, condition in enumerate(self.where):
            for side, column in () if condition is None else condition.columns():
                if side == 1 and step == number:
                    named.append(column)
                elif side == 0 and column.startswith(f"{name}."):
                    named.append(column.removeprefix(f"{name}."))
        return tuple(dict.fromkeys(named))

    def require_columns(self, schemas: Sequence[pa.Schema]) -> None:
        """Raise unless all columns that are compared are there, and those of time of one type.

        Raises
        ------
        UsageError
            If a column is missing, or a column of time gives no order or has another type.
        """
        types = []
        for number, (name, schema) in enumerate(zip(self.names, schemas, strict=True)):
            for column in self.columns(number):
                require_column(schema.names, column, f"input {name!r}")
            time = column_type(schema, self.time[number], name)
            require_temporal(time)
            types.append(schema.field(time.column).type)
        for name, kind in zip(self.names, types, strict=True):
            if kind != types[0]:
                raise UsageError(
                    f"Times of several inputs must be of one type, but that of {self.names[0]!r} "
                    f"is {types[0]} and that of {name!r} is {kind}; cast one of them."
                )

    def __str__(self) -> str:
        inputs = ", ".join(self.names)
        terms = [" = ".join(map(".".join, zip(self.names, one, strict=True))) for one in self.on]
        terms += [str(one) for one in self.where if one is not None]
        window = f"{self.within}" if self.advance is None else f"windows of {self.within}"
        every = "" if self.advance is None else f", every {self.advance}"
        return f"{inputs}: {' and '.join(terms) or 'all rows'}, within {window}{every}"


def _of_each(names: Sequence[str], given: object, word: str) -> tuple[str, ...]:
    """Return a column of each input; one name is that of all."""
    if isinstance(given, str):
        return (given,) * len(names)
    listed = tuple(given) if isinstance(given, (list, tuple)) else ()
    if len(listed) != len(names) or not all(isinstance(name, str) for name in listed):
        raise UsageError(
            f"{word} names a column that all of the {len(names)} inputs have, or lists one for "
            f"each of them, not {given!r}."
        )
    return listed


# The parts of a condition on several inputs, each where the last of its inputs is joined.


def _conditions_of(names: tuple[str, ...], where: str | None) -> tuple[Condition | None, ...]:
    """Return the condition of each step; the first input has none."""
    found: list[Condition | None] = [None] * len(names)
    if where is None:
        return tuple(found)
    text = as_text(where, "where").replace("\n", " ").strip()
    for part in _conjuncts(parsed(text)):
        used = {names.index(name) for name in _inputs_in(part, names, text)}
        if not used:
            raise ExpressionError(
                text, f"{ast.unparse(part)!r} reads no input", f"write {names[0]}.x for column x"
            )
        step = max(1, *used)

        def of_step(name: str, column: str, last: str = names[step]) -> ast.expr:
            """Return a column of the rows ``l`` and ``r`` of the step."""
            if name == last:
                return ast.Subscript(ast.Name("r"), ast.Constant(column))
            return ast.Subscript(ast.Name("l"), ast.Constant(f"{name}.{column}"))

        one = Condition(ast.unparse(Columns(of_step).visit(part)))
        before = found[step]
        found[step] = one if before is None else before & one
    return tuple(found)


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    return [node]


def _inputs_in(part: ast.expr, names: Sequence[str], text: str) -> set[str]:
    """Return the inputs that a part of a condition reads."""
    used = set()
    for node in ast.walk(part):
        found = read_column(node)
        if found is None:
            continue
        name = found[0].id
        if name not in names:
            raise ExpressionError(
                text,
                f"{name!r} is no input",
                f"name one of {', '.join(names)}",
                place_in(text, found[0]),
            )
        used.add(name)
    return used


# The joins, one after another.


def join_tables_of_many(
    tables: Mapping[str, pa.Table],
    query: ManyQuery,
    opened: Callable[[Query], AbstractContextManager[Device]],
) -> pa.Table:
    """Join several tables.

    Parameters
    ----------
    tables : mapping of str to pa.Table
        The inputs, by the names that the query has.
    query : ManyQuery
        What is joined.
    opened : callable
        Opens the device of a step.

    Returns
    -------
    pa.Table
        The columns of all inputs, called ``input.column``. Results come in the order in which their
        latest rows arrive, those of one latest row in the order of their rows of the first input,
        of the second one and so on. Rows arrive by time; on a tie those of the first input before
        those of the second one and so on, then in the order of input.

    Raises
    ------
    UsageError
        If a column, a type or a device will not do, or a time is null.
    CapacityError
        If a device has no room for the window.
    """
    given = [without_views(tables[name]) for name in query.names]
    query.require_columns([table.schema for table in given])
    for name, table, time in zip(query.names, given, query.time, strict=True):
        check = OrderCheck(column_type(table.schema, time, name), is_sorted=False)
        for batch in table.to_batches():
            check.see(batch)
    found = _beginning(given[0], query)
    numbers: list[Int64s] = [np.arange(given[0].num_rows)]
    for number, table in enumerate(given[1:], 1):
        right = table.select(query.columns(number))
        with opened(query.step(number)) as device:
            rows, own = Join(found, right, query.step(number), device, record=True).run().pairs
        numbers = [*(one[rows] for one in numbers), own]
        if number < len(given) - 1:
            found = _found(found, right, query, number, rows, own)
    order = _order(given, query, numbers)
    columns = {
        f"{name}.{column}": table.column(column).take(pa.array(own[order]))
        for name, table, own in zip(query.names, given, numbers, strict=True)
        for column in table.column_names
    }
    return pa.table(columns)


def _beginning(table: pa.Table, query: ManyQuery) -> pa.Table:
    """Return the rows of the first input as what a step has found."""
    name, time = query.names[0], table.column(query.time[0])
    columns = {f"{name}.{column}": table.column(column) for column in query.columns(0)}
    return pa.table({EARLIEST: time, LATEST: time} | columns)


def _found(
    before: pa.Table, right: pa.Table, query: ManyQuery, number: int, rows: Int64s, own: Int64s
) -> pa.Table:
    """Return what a step has found: pairs of what was found before with rows of an input."""
    kept, new = before.take(pa.array(rows)), right.take(pa.array(own))
    time = contiguous(new.column(query.time[number]))
    earliest, latest = (contiguous(kept.column(end)) for end in (EARLIEST, LATEST))
    ends = {
        EARLIEST: pc.if_else(pc.less(time, earliest), time, earliest),
        LATEST: pc.if_else(pc.greater(time, latest), time, latest),
    }
    others = {name: kept.column(name) for name in kept.column_names[2:]}
    names = {f"{query.names[number]}.{column}": new.column(column) for column in new.column_names}
    return pa.table(ends | others | names)


def _order(given: Sequence[pa.Table], query: ManyQuery, numbers: Sequence[Int64s]) -> Int64s:
    """Return the total order of results: by the latest row, then by the rows of each input."""
    times = [
        integer_view(contiguous(table.column(time)))
        for table, time in zip(given, query.time, strict=True)
    ]
    ranks = [
        inverse(np.argsort(own, kind="stable"))[rows]
        for own, rows in zip(times, numbers, strict=True)
    ]
    found = np.stack([own[rows] for own, rows in zip(times, numbers, strict=True)])
    latest = found.max(axis=0, initial=np.iinfo(found.dtype).min)
    last = len(given) - 1 - np.argmax((found == latest)[::-1], axis=0)
    arrived = np.stack(ranks)[last, np.arange(len(last))]
    order: Int64s = np.lexsort((*ranks[::-1], arrived, last, latest))
    return order
