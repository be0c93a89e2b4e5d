# SPDX-License-Identifier: Apache-2.0
"""Described operators from Arrow to Arrow: in software, on an accelerator, whole or in two phases.

The first phase looks at each tuple by itself, or at those at hand: it finds their keys, and reduces
the tuples of each key in each pane. The second phase needs all tuples of a key, and makes windows
and pairs of what the first phase gives, its *parts*. Files take both phases one after the other,
and Spark sends the parts to where their keys are in between.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
import importlib.util
from pathlib import Path
import sys

import numpy as np
import pyarrow as pa

from host.arrays import Array, Int64s
from host.columns.kinds import Kind, column_type, contiguous, integer_view, one_batch, row_at
from host.columns.windows import TimeColumn, Windows
from host.devices import device_kind, open_aggregate, open_device
from host.devices.bundles import SIMULATED, default_bundle, operator_bundle
from host.devices.simulated import SimulatedAggregate
from host.devices.waiting import Deadline, Work
from host.errors import AcceleratorLimitError, UnsupportedTypeError, UsageError, unusable_uri
from host.installation import command
from host.operators.aggregate import Aggregation, DeviceWindows, HostWindows, Lanes
from host.operators.meaning import WindowResult, reference_results
from host.operators.own import OwnOperator, operator_time, require_inputs
from host.operators.panes import COMBINES, WindowStates
from host.operators.states import ExactSums, KeyNumbers
from host.operators.vectorized import (
    ALL,
    Entries,
    Names,
    OperatorArrays,
    Span,
    contributions,
    entries,
    fields_of,
    forwarded,
    forwarded_fields,
    joined,
    state_results,
    windows_of,
)
from host.operators.windowed import Field, WindowedOperator, state_overflow
from host.protocol.manifest import AggregateManifest
from host.query.queries import BOUNDARIES, Query
from host.query.tables import Input, Supply, require_column
from host.query.words import Columns, Length, as_span, column_pair
from host.query.words import Span as UnitSpan
from host.reference.operator import Arrival
from host.session.join import Join

__all__ = [
    "OperatorColumns",
    "OperatorEngine",
    "OperatorAggregation",
    "OperatorQuery",
    "OperatorStream",
    "accelerator_for",
    "load_description",
    "operate_tables",
    "reference_rows",
    "require_device",
]

# What is asked: an operator, and what its inputs call the time and how long a unit of it is.


@dataclass(frozen=True, init=False)
class OperatorQuery:
    """An operator over columns.

    Tuples arrive in the order of their times; on a tie, those of the left input first, and then in
    the order of the input.

    Parameters
    ----------
    operator : WindowedOperator
        What is computed. The columns of its inputs have the names of its fields.
    time : str or (str, str)
        Column of time, which the expressions of the operator call ``timestamp``: integers, dates or
        timestamps.
    unit : int, timedelta or str, optional
        How long a unit of the operator's time is: a duration such as ``"1s"`` for dates and
        timestamps, a whole number for integers (by default 1). Times are rounded down to it.

    Raises
    ------
    UsageError
        If the operator is none, or the unit is no length.
    """

    operator: WindowedOperator
    time: tuple[str, str]
    unit: UnitSpan | None

    def __init__(
        self,
        operator: WindowedOperator,
        time: Columns = "timestamp",
        unit: Length | None = None,
    ) -> None:
        if not isinstance(operator, WindowedOperator):
            raise UsageError(
                f"An operator is a host.operators.windowed.WindowedOperator, not {operator!r}; one "
                f"of Python functions runs in host.operate and `host operate`, without a device."
            )
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "time", column_pair(time, "time"))
        span = None if unit is None else as_span(unit, "unit", least=1)
        object.__setattr__(self, "unit", span)

    def __str__(self) -> str:
        operator = self.operator
        keys = f" by {', '.join(operator.key_names or ())}" if operator.keys else ""
        unit = "" if self.unit is None else f" x {self.unit}"
        return (
            f"{operator.kind} {operator.name!r}{keys}, windows of {operator.size}{unit} every "
            f"{operator.advance}{unit}"
        )

    def time_column(self, schema: pa.Schema, side: int) -> TimeColumn:
        """Return the column of time of an input, and the windows over it.

        Raises
        ------
        UsageError
            If the column is temporal and it is not said how long a unit is.
        """
        return operator_time(self.operator, schema, self.time[side], self.unit, _SIDES[side])


_SIDES = ("left", "right")
#: What the expressions of an operator call the time.
_TIME = "timestamp"


def load_description(text: str) -> WindowedOperator | OwnOperator:
    """Return the operator of a Python file, which is run.

    Parameters
    ----------
    text : str
        The file, such as ``operators.py``, or a file and the name of one of its operators, as in
        ``operators.py:sessions``.

    Raises
    ------
    UsageError
        If the file cannot be run, or does not have one such operator.
    """
    place, separator, name = text.rpartition(":")
    if not separator or not place.endswith(".py"):
        place, name = text, ""
    file = Path(place)
    if not file.is_file():
        raise UsageError(f"There is no file {place!r} that describes an operator.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"File {place!r} is no Python file: its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"File {place!r} cannot be run: {type(error).__name__}: {error}."
        ) from error
    finally:
        sys.path.remove(folder)
    found = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, WindowedOperator | OwnOperator)
    }
    names = ", ".join(found) or "none"
    if name:
        if name not in found:
            raise UsageError(f"File {place!r} has no operator {name!r}; it has: {names}.")
        return found[name]
    if len(found) != 1:
        raise UsageError(
            f"File {place!r} must have one operator, or the name of one behind it, as in "
            f"{place}:NAME; it has: {names}."
        )
    return next(iter(found.values()))


# Where the work of a phase is done: in software, or on an accelerator.


class OperatorEngine:
    """Does the work of an operator: in software, or on an accelerator that was generated for it.

    The accelerator of an aggregate finds the keys of tuples and reduces these. That of a join
    compares tuples. That of a forward gives each tuple for each of its keys. What it gives, the
    host makes results of: outputs, ``having``, ``slide``, and whatever else of ``match``.

    Parameters
    ----------
    operator : WindowedOperator
    device : str, optional
        Address of the accelerator: of aggregates for an aggregate or a forward, else of joins; see
        :func:`accelerator_for`. By default, and for ``"software:"``, the software engine.

    Attributes
    ----------
    work : Work
        What the accelerator took.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator was generated for another operator.
    DeviceError
        If it does not open.
    """

    def __init__(self, operator: WindowedOperator, device: str | None = None) -> None:
        self._operator = operator
        self.work = Work()
        self._aggregate: SimulatedAggregate | None = None
        with ExitStack() as opened:
            if operator.match is not None:
                self._joins = opened.enter_context(open_device(device or "software:"))
            elif device is not None and device != "software:":
                self._core = WindowedOperator.from_dict(operator.circuit())
                device = accelerator_for(operator, device)
                self._aggregate = opened.enter_context(closing(open_aggregate(device)))
                _require_same(self._core, self._aggregate.manifest, device)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the accelerator."""
        self._opened.close()

    def aggregation(
        self, columns: "OperatorColumns", *, panes: bool = False
    ) -> "OperatorAggregation":
        """Return an aggregation that has had no row.

        Parameters
        ----------
        columns : OperatorColumns
            Of an aggregate.
        panes : bool
            Whether only the states of panes are wanted.
        """
        if self._aggregate is None:
            return OperatorAggregation(columns)
        core = self._core
        core = core.with_(size=core.pane, advance=core.pane) if panes else core
        return _DeviceAggregation(columns, core, self._kept(self._aggregate, core))

    def entries(self, inputs: Sequence[Names]) -> list[Entries]:
        """Return the keys of the tuples of each input."""
        if self._aggregate is None:
            return [entries(self._operator, names) for names in inputs]
        counts = [len(names[_TIME]) for names in inputs]
        place = np.arange(sum(counts), dtype=np.int64)
        absent = [np.zeros(count, np.int64) for count in counts]
        fields = [
            np.concatenate([at.get(one.name, no) for at, no in zip(inputs, absent, strict=True)])
            for one in self._core.fields
        ]
        with closing(self._kept(self._aggregate, self._core)) as kept:
            keys = _FoundKeys(self._core.key_fields, kept.keys)
            kept.add(np.zeros(len(place), np.int64), place, fields, None)
            found = kept.ended(keys.ranks(), None, None)
        parts = _arrays(keys.rows(found.key))
        first = 0
        sides: list[Entries] = []
        for count in counts:
            own = (found.window >= first) & (found.window < first + count)
            sides.append((found.window[own] - first, [part[own] for part in parts]))
            first += count
        return sides

    def find(self, left: pa.Table, right: pa.Table, query: Query) -> tuple[Int64s, Int64s]:
        """Return the numbers of the rows of the pairs that a query joins."""
        found = Join(left, right, query, self._joins).run()
        self.work.cycles += found.cycles
        self.work.seconds += found.device_seconds
        return found.pairs

    def _kept(self, device: SimulatedAggregate, core: WindowedOperator) -> DeviceWindows:
        windows = Windows(_TIME, core.size, core.advance)
        return DeviceWindows(windows, Lanes(core), device, Deadline(), self.work)


class _FoundKeys(KeyNumbers):
    """Keys that an accelerator has found: their parts stand side by side in one number.

    Parameters
    ----------
    fields : sequence of Field
        The parts, the first one lowest.
    count : int
        How many numbers there are.
    """

    def __init__(self, fields: Sequence[Field], count: int) -> None:
        super().__init__(pa.schema([]), ())
        self._fields, self._numbers = fields, np.arange(count)

    def rows(self, numbers: Int64s) -> list[pa.Array]:
        """Return the columns of the keys with these numbers."""
        parts = []
        for one in self._fields:
            part = numbers & ((1 << one.bits) - 1)
            part = part - ((part >> one.bits - 1) << one.bits) if one.signed else part
            parts.append(pa.array(part))
            numbers = numbers >> one.bits
        return parts

    def ranks(self) -> Int64s:
        """Return the place of each number's key among all keys sorted."""
        parts = _arrays(self.rows(self._numbers))
        order = np.lexsort(tuple(reversed(parts))) if parts else self._numbers
        return np.argsort(order)


def _arrays(columns: Iterable[pa.Array]) -> list[Int64s]:
    return [column.to_numpy(zero_copy_only=False) for column in columns]


def accelerator_for(operator: WindowedOperator, device: str) -> str:
    """Return the address of the accelerator that is named for an operator.

    ``"sim:"`` is one that is generated for it, unless its bundle is here; for an operator of pairs,
    it is the default index.

    Raises
    ------
    MissingToolError, BuildError
        If the bundle must be built and cannot be.
    """
    if device != SIMULATED:
        return device
    if operator.match is not None:
        return f"{SIMULATED}{default_bundle('index')}"
    return f"{SIMULATED}{operator_bundle(operator.circuit())}"


def require_device(operator: WindowedOperator, uri: str) -> None:
    """Raise unless an address is one of an accelerator for an operator, which is not opened.

    Raises
    ------
    UsageError, ManifestError
        If there is no such accelerator.
    AcceleratorLimitError
        If it was generated for another operator.
    """
    if operator.match is not None:
        device_kind(uri)
        return
    _, _, place = uri.partition(":")
    if device_kind(uri) != "sim" or not place:
        raise unusable_uri(uri, "cannot aggregate, as only 'sim:BUNDLE' can")
    core = WindowedOperator.from_dict(operator.circuit())
    _require_same(core, AggregateManifest.load(place), uri)


def _require_same(core: WindowedOperator, manifest: AggregateManifest, uri: str) -> None:
    """Raise unless an accelerator computes what an operator needs; windows are set at run time."""
    given = manifest.operator
    wanted = core.to_dict()
    different = [
        name
        for name in ("fields", "keys", "key_fields", "reductions")
        if list(given.get(name, ())) != list(wanted.get(name, ()))
    ]
    if different:
        raise AcceleratorLimitError(
            f"Accelerator {uri!r} was generated for operator {given.get('name')!r}, which differs "
            f"from {core.name!r} in its {', '.join(different)}",
            f"generate one for the operator: "
            f"{command('sim build --operator DESCRIPTION.py --output DIR')}, or name 'sim:', "
            f"which does so",
        )


# Columns of inputs as arrays, of parts, and of results.


#: Columns of parts that no field is called like: times in units of the operator, keys and states.
_PANE = "pane"


def _state_column(name: str) -> str:
    return f"state {name}"


class OperatorColumns:
    """Columns of an operator: how they become its tuples, and its results columns.

    Parameters
    ----------
    schemas : sequence of pa.Schema
        Columns of each input.
    query : OperatorQuery

    Attributes
    ----------
    schema : pa.Schema
        Columns of the results: the boundaries of the window (of results that come when a tuple
        arrives, the right one), the parts of the key, and then the outputs of an aggregate, the
        fields of a left and a right tuple, the fields of a left tuple and the outputs of its
        matches, or the fields of a forwarded tuple, and the number of its input if there are two.
    parts : pa.Schema
        Columns of the parts of each input.

    Raises
    ------
    UsageError
        If there are not as many inputs as the operator has, or a column does not suit.
    """

    def __init__(self, schemas: Sequence[pa.Schema], query: OperatorQuery) -> None:
        self.query = query
        operator = query.operator
        require_inputs(operator.name, operator.inputs, len(schemas))
        self.times = [query.time_column(schema, side) for side, schema in enumerate(schemas)]
        if len({time.type for time in self.times}) > 1:
            kinds = " and ".join(f"{time.name!r} of type {time.type}" for time in self.times)
            raise UsageError(f"Both inputs must have times of one type, not {kinds}; cast one.")
        for side, schema in enumerate(schemas):
            for one in operator.schemas[side]:
                require_column(schema.names, one.name, f"the {_SIDES[side]} input")
                found = column_type(schema, one.name, _SIDES[side])
                if found.kind not in (Kind.INTEGER, Kind.BOOLEAN):
                    raise UnsupportedTypeError(
                        one.name, found.dtype,
                        f"integers and booleans, as it is a field of operator {operator.name!r}: "
                        f"number texts, and scale decimals",
                    )  # fmt: skip
        self._unit = self.times[0].window // operator.size  # in units of the column
        self.schema = self._result_schema()
        self.parts = [self._part_schema(side) for side in range(operator.inputs)]

    @property
    def has_parts(self) -> bool:
        """Whether there is a second phase: a forward has none."""
        return self.query.operator.kind != "forward"

    @property
    def part_keys(self) -> list[str]:
        """Columns of parts whose equal values have to meet in the second phase; may be empty."""
        if self.query.operator.in_turns:
            return []
        return [f"key {name}" for name in self.query.operator.key_names or ()]

    def first(
        self, tables: Sequence[pa.Table], engine: OperatorEngine, begins: Sequence[int] = (0, 0)
    ) -> list[pa.Table]:
        """Return the parts of the rows at hand; of a forward, its results as a single table.

        Parameters
        ----------
        tables : sequence of pa.Table
            Rows of each input.
        engine : OperatorEngine
            What does the work.
        begins : sequence of int
            Number of the first row of each input, for errors.
        """
        operator = self.query.operator
        if operator.kind == "aggregate":
            with engine.aggregation(self, panes=True) as work:
                work.rows = begins[0]
                work.more_rows(self._batch(0, tables[0]))
                return [work.parts()]
        inputs = [
            self._tuples(side, table, begin)
            for side, (table, begin) in enumerate(zip(tables, begins, strict=False))
        ]
        found = engine.entries(inputs)
        if operator.kind == "forward":
            return [self._table(forwarded(operator, inputs, found))]
        return [
            self._entry_table(side, names, own)
            for side, (names, own) in enumerate(zip(inputs, found, strict=True))
        ]

    def second(
        self,
        parts: Sequence[pa.Table],
        engine: OperatorEngine,
        span: Span = ALL,
        before: int = 0,
    ) -> tuple[pa.Table, list[pa.Table]]:
        """Return the results of parts, and the parts that results to come still need.

        Parameters
        ----------
        parts : sequence of pa.Table
            All parts of some keys; those of tuples that arrive later come later.
        engine : OperatorEngine
        span : Span
            Which results are wanted.
        before : int
            Tuples that have arrived before all of these, for a join that stores in turns.
        """
        operator = self.query.operator
        if operator.kind == "aggregate":
            since, until = (at and self.time_of(at) for at in (span.since, span.until))
            work = OperatorAggregation(self, since)
            work.more_parts(parts[0])
            found = work.last_rows() if until is None else work.ended(until)
            return pa.Table.from_batches([found]), [work.parts()]
        inputs = [self._names_of(side, table) for side, table in enumerate(parts)]
        keys = [[_integers(table, name) for name in self.part_keys] for table in parts]
        found = joined(operator, inputs, keys, engine.find, span, before)
        return self._table(found), self._kept(parts, inputs, span)

    def whole(self, inputs: Sequence[Supply], engine: OperatorEngine) -> pa.Table:
        """Return the results of all rows; those of an aggregate are never at hand as a whole."""
        operator = self.query.operator
        if operator.kind != "aggregate":
            parts = self.first([_table_of(rows) for rows in inputs], engine)
            return self.second(parts, engine)[0] if self.has_parts else parts[0]
        in_two = operator.slide is not None  # which the host evaluates
        with engine.aggregation(self, panes=in_two) as work:
            for batch in inputs[0].batches():
                work.more_rows(self._batch(0, batch))
            if not in_two:
                return pa.Table.from_batches([work.last_rows()])
            return self.second([work.parts()], engine)[0]

    def arrivals(self, tables: Sequence[pa.Table]) -> list[Arrival]:
        """Return the tuples of all inputs in the order of arrival, for the reference operator."""
        found = []
        for side, table in enumerate(tables):
            names = self._tuples(side, table, 0)
            fields = [one.name for one in self.query.operator.schemas[side]]
            columns = [names[name].tolist() for name in ("timestamp", *fields)]
            for time, *values in zip(*columns, strict=True):
                found.append(Arrival(time, dict(zip(fields, values, strict=True)), side))
        return sorted(found, key=lambda arrival: arrival.timestamp)

    def reference(self, results: Iterable[WindowResult]) -> pa.Table:
        """Return results of the reference operator as a table, like those of other engines."""
        operator = self.query.operator
        names, rows = forwarded_fields(operator), []
        for result in results:
            bounds = [result.timestamp - operator.size, result.timestamp]
            bounds = bounds if operator.kind == "aggregate" else bounds[1:]
            values = [float(at) if isinstance(at, Fraction) else at for at in result.values]
            if operator.kind == "forward":
                fields = [one.name for one in operator.schemas[result.input]]
                given = dict(zip(fields, values, strict=True))
                values = [given.get(name) for name in names]
                values += [result.input] * (operator.inputs - 1)
            rows.append([*(bound * self._unit for bound in bounds), *result.key, *values])
        columns = list(zip(*rows, strict=True)) or [()] * len(self.schema)
        arrays = [pa.array(at, one.type) for at, one in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def until(self, watermark: int) -> int:
        """Return the operator's time that a watermark, in units of the column, has reached."""
        return watermark // self._unit

    def time_of(self, time: int) -> int:
        """Return a time of the operator in units of the column."""
        return time * self._unit

    def names(self, side: int, batch: pa.RecordBatch, times: Int64s, begin: int) -> Names:
        """Return what expressions read of tuples, whose times are those of the column.

        Parameters
        ----------
        begin : int
            Number of the first row, for errors.
        """
        operator = self.query.operator
        columns = {one.name: _values(batch, one.name, begin) for one in operator.schemas[side]}
        return fields_of(operator, times // self._unit, columns, side)

    def _batch(self, side: int, rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of tuples."""
        names = [self.times[side].name, *(one.name for one in self.query.operator.schemas[side])]
        return one_batch(rows.select(list(dict.fromkeys(names))))

    def _tuples(self, side: int, table: pa.Table, begin: int) -> Names:
        batch = self._batch(side, table)
        return self.names(side, batch, self.times[side].read(batch, begin), begin)

    def _entry_table(self, side: int, names: Names, found: Entries) -> pa.Table:
        rows, parts = found
        fields = [names[one.name][rows] for one in self.query.operator.schemas[side]]
        columns = [names["timestamp"][rows], *parts, *fields]
        return pa.Table.from_arrays([pa.array(at) for at in columns], schema=self.parts[side])

    def _names_of(self, side: int, table: pa.Table) -> Names:
        """Return what expressions read of the tuples of parts."""
        fields = {one.name: _integers(table, one.name) for one in self.query.operator.schemas[side]}
        return {_TIME: _integers(table, _PANE), **fields}

    def _kept(
        self, parts: Sequence[pa.Table], inputs: Sequence[Names], span: Span
    ) -> list[pa.Table]:
        """Return the tuples that are not decided, and those that later ones may meet."""
        if span.until is None:
            return [table.schema.empty_table() for table in parts]
        operator = self.query.operator
        first = ((span.until - operator.size) // operator.advance + 1) * operator.advance
        kept = []
        for side, (table, names) in enumerate(zip(parts, inputs, strict=True)):
            # A left tuple whose matches are aggregated has given its result.
            gone = bool(operator.reductions) and side == 0
            bound = span.until if gone else min(first, span.until)
            kept.append(table.filter(pa.array(names["timestamp"] >= bound)))
        return kept

    def results(self, found: OperatorArrays) -> pa.RecordBatch:
        """Return results as columns."""
        is_aggregate = self.query.operator.kind == "aggregate"
        bounds = [found.start, found.end] if is_aggregate else [found.end]
        columns: list[pa.Array] = [self.times[0].values(at * self._unit) for at in bounds]
        columns += [pa.array(part) for part in found.keys.values()]
        columns += map(_nullable, found.values)
        arrays = [at.cast(one.type) for at, one in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _table(self, found: OperatorArrays) -> pa.Table:
        return pa.Table.from_batches([self.results(found)])

    def _result_schema(self) -> pa.Schema:
        operator, time = self.query.operator, self.times[0].type
        bounds = BOUNDARIES if operator.kind == "aggregate" else BOUNDARIES[1:]
        fields = [(name, time) for name in bounds]
        fields += [(name, pa.int64()) for name in operator.key_names or ()]
        if operator.kind == "forward":
            names = [*forwarded_fields(operator), *(["input"] if operator.inputs > 1 else [])]
            return pa.schema(_distinct(fields, [(name, pa.int64()) for name in names], ""))
        if operator.kind != "aggregate":
            for side in range(1 if operator.reductions else 2):
                own = [(one.name, pa.int64()) for one in operator.schemas[side]]
                fields = _distinct(fields, own, f"_{_SIDES[side]}")
        outputs = [
            (one.name, pa.int64() if one.per is None else pa.float64())
            for one in operator.outputs or ()
        ]
        return pa.schema(_distinct(fields, outputs, "_of_window"))

    def _part_schema(self, side: int) -> pa.Schema:
        operator = self.query.operator
        names = [_PANE, *self.part_keys]
        if operator.kind == "aggregate":
            names += [_state_column(one.name) for one in operator.reductions]
        else:
            names += [one.name for one in operator.schemas[side]]
        return pa.schema([(name, pa.int64()) for name in names])


def _distinct(
    fields: Sequence[tuple[str, pa.DataType]],
    more: Iterable[tuple[str, pa.DataType]],
    suffix: str,
) -> list[tuple[str, pa.DataType]]:
    """Return columns and more of them; a name that is taken gets a suffix."""
    found = list(fields)
    for name, kind in more:
        while name in {taken for taken, _ in found}:
            name += suffix or "_"
        found.append((name, kind))
    return found


def _integers(table: pa.Table, name: str) -> Int64s:
    values: Int64s = contiguous(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def _values(batch: pa.RecordBatch, name: str, begin: int) -> Array:
    """Return the values of a field, which has no null."""
    column = batch.column(batch.schema.get_field_index(name))
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        at = int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
        raise UsageError(
            f"Column {name!r} is null in row {begin + at} (the first is 0), the row with "
            f"{row_at(batch, at)}; an operator reads integers: fill the null, or leave the row out."
        )
    return integer_view(column)


def _narrowed(operator: WindowedOperator, name: str, states: Array) -> Int64s:
    """Return states of panes as 64 bits hold them."""
    if states.dtype != object:
        return states.astype(np.int64, copy=False)
    low, high = -(1 << 63), (1 << 63) - 1
    wrong = [value for value in states.tolist() if not low <= value <= high]
    if wrong:
        raise state_overflow(name, wrong[0], low, high, window=(0, operator.pane), key=())
    return states.astype(np.int64)


def _nullable(values: Array) -> pa.Array:
    """Return outputs, of which NaN is a division by zero and masked ones are of nothing."""
    mask = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if data.dtype == np.float64:
        mask = mask | np.isnan(data)
    return pa.array(data, mask=mask if mask.any() else None)


# An aggregate whose rows, or whose parts, come in pieces.


class OperatorAggregation(Aggregation):
    """The aggregation that an operator describes.

    Parameters
    ----------
    columns : OperatorColumns
        Of an aggregate.
    since : int, optional
        A watermark that rows have reached before these, in units of the column.
    """

    windows: HostWindows | DeviceWindows

    def __init__(self, columns: OperatorColumns, since: int | None = None) -> None:
        self._columns, self._operator = columns, columns.query.operator
        names = self._operator.key_names or ()
        keys = KeyNumbers(pa.schema([(name, pa.int64()) for name in names]), names)
        super().__init__(columns.times[0], keys, columns.schema, since)
        self.windows = windows_of(self._operator, self.time, self._parts_of)
        self._sums, self._reduced = ExactSums(), 0

    def entries(self, batch: pa.RecordBatch, times: Int64s) -> tuple[Int64s, Int64s, list[Array]]:
        """See :meth:`Aggregation.entries`."""
        names = self._columns.names(0, batch, times, self.rows)
        rows, parts = entries(self._operator, names)
        self._reduced += len(rows)
        values = contributions(self._operator, names, rows, self._sums, self._reduced)
        return times[rows], self._numbers(parts, len(rows)), values

    def columns(self, found: WindowStates) -> list[pa.Array]:
        """See :meth:`Aggregation.columns`."""
        arrays = state_results(self._operator, found, self._parts_of)
        return list(self._columns.results(arrays).columns)

    def more_parts(self, table: pa.Table) -> None:
        """Take parts of rows, which :meth:`parts` has returned."""
        operator, count = self._operator, table.num_rows
        self._reduced += count
        keys = [_integers(table, name) for name in self._columns.part_keys]
        values: list[Array] = []
        for one in operator.reductions:
            states = _integers(table, _state_column(one.name))
            adds = COMBINES.get(one.function) is np.add
            values.append(self._sums.of(one.name, states, self._reduced) if adds else states)
        self.add(self._numbers(keys, count), _integers(table, _PANE), values)

    def parts(self) -> pa.Table:
        """Return the states of keys in panes that windows to come still need."""
        cells = self.windows.panes()
        states = [
            _narrowed(self._operator, one.name, states)
            for one, states in zip(self._operator.reductions, cells.states, strict=True)
        ]
        columns = [pa.array(cells.pane), *self.keys.rows(cells.key), *map(pa.array, states)]
        return pa.Table.from_arrays(columns, schema=self._columns.parts[0])

    def _numbers(self, parts: Sequence[Int64s], count: int) -> Int64s:
        """Return the numbers of keys."""
        if not parts:
            return np.zeros(count, np.int64)
        return self.keys.of_rows(
            pa.RecordBatch.from_arrays(list(map(pa.array, parts)), schema=self.keys.schema)
        )

    def _parts_of(self, numbers: Int64s) -> list[Int64s]:
        return _arrays(self.keys.rows(numbers))


class _DeviceAggregation(OperatorAggregation):
    """An aggregation whose keys and windows are an accelerator's, which gets the tuples."""

    def __init__(
        self, columns: OperatorColumns, core: WindowedOperator, windows: DeviceWindows
    ) -> None:
        super().__init__(columns)
        self._core, self.windows = core, self.closing.enter_context(closing(windows))
        self.keys = _FoundKeys(core.key_fields, windows.keys)

    def entries(self, batch: pa.RecordBatch, times: Int64s) -> tuple[Int64s, Int64s, list[Array]]:
        """See :meth:`Aggregation.entries`."""
        names = self._columns.names(0, batch, times, self.rows)
        values: list[Array] = [names[one.name] for one in self._core.fields]
        values += [names[_TIME]] * self._core.reads_time
        return times, np.zeros(len(times), np.int64), values


# Parts that come in pieces, with watermarks between them.


class OperatorStream:
    """The second phase of an operator for some keys, whose parts come in pieces.

    A part is late if a watermark has passed all that it could count in: for an aggregate the
    windows that the tuple is in, for a join the tuple itself. Late parts are left out.

    Parameters
    ----------
    columns : OperatorColumns
    engine : OperatorEngine

    Attributes
    ----------
    kept : list of pa.Table
        Parts of each input that results to come need.
    since : int or None
        The last watermark, in the operator's units; None before the first one.
    decided : int
        Tuples that have arrived before it, of a join.
    late : list of int
        Parts of each input that came too late.
    """

    def __init__(self, columns: OperatorColumns, engine: OperatorEngine) -> None:
        self._columns, self._engine = columns, engine
        self._operator = columns.query.operator
        self.kept = [schema.empty_table() for schema in columns.parts]
        self.since: int | None = None
        self.decided = 0
        self.late = [0] * len(self.kept)

    def until(self, new: Sequence[pa.Table], watermark: int) -> pa.Table:
        """Take parts that come with a watermark; return the results that it decides.

        Parameters
        ----------
        new : sequence of pa.Table
            Parts of each input.
        watermark : int
            No tuple of these or of later pieces has a lower time, in the operator's units; those
            that have are late.
        """
        watermark = max(watermark, 0 if self.since is None else self.since)
        found, kept = self._decide(Span(self.since, watermark))
        floor = self._floor(watermark)
        for side, (rows, more) in enumerate(zip(kept, new, strict=True)):
            in_time = more.filter(pa.array(_integers(more, _PANE) >= floor))
            self.late[side] += more.num_rows - in_time.num_rows
            kept[side] = pa.concat_tables([rows, in_time]).combine_chunks()
        self.kept, self.since = kept, watermark
        return found

    def finish(self) -> pa.Table:
        """Return all results that are left: the end of the stream."""
        found, self.kept = self._decide(Span(self.since, None))
        return found

    def next_time(self) -> int | None:
        """Return the watermark that has something to decide or to forget; None if none has."""
        times = np.concatenate([_integers(table, _PANE) for table in self.kept])
        if not len(times):
            return None
        operator, first = self._operator, int(times.min())
        if operator.kind != "aggregate":
            waiting = times[times >= (self.since or 0)]
            return int(waiting.min()) + 1 if len(waiting) else first + operator.size
        first = max(first * operator.pane, self.since or 0)
        return ((first - operator.size) // operator.advance + 1) * operator.advance + operator.size

    def _decide(self, span: Span) -> tuple[pa.Table, list[pa.Table]]:
        if self._operator.kind == "aggregate":
            return self._columns.second(self.kept, self._engine, span)
        times = np.concatenate([_integers(table, _PANE) for table in self.kept])
        held = int((times < (self.since or 0)).sum())
        before = self.decided - held
        self.decided += int(span.holds(times).sum())
        return self._columns.second(self.kept, self._engine, span, before)

    def _floor(self, watermark: int) -> int:
        """Return the least time of a part that is not late: a pane's number, or a tuple's time."""
        operator = self._operator
        if operator.kind != "aggregate":
            return watermark
        last = (watermark - operator.size) // operator.advance
        if operator.slide is None:
            return (last + 1) * operator.advance // operator.pane
        return (last * operator.advance + operator.size) // operator.pane


# Whole tables.


def operate_tables(
    inputs: Sequence[Input],
    query: OperatorQuery,
    device: str | None = None,
    work: Callable[[Work], None] | None = None,
) -> pa.Table:
    """Return the results of an operator on the rows of its inputs.

    Parameters
    ----------
    inputs : sequence of pa.Table, pa.RecordBatchReader or iterable of pa.RecordBatch
        The rows of each input, in any order. Of an aggregate in software, no more than a batch and
        the states of its keys in panes are in memory.
    query : OperatorQuery
    device : str, optional
        Address of an accelerator; by default the software engine.
    work : callable, optional
        Told what the device took.

    Raises
    ------
    UsageError
        If the operator does not suit the columns, or the accelerator, or a state does not fit its
        bits when its window ends.
    """
    supplies = [Supply(rows) for rows in inputs]
    columns = OperatorColumns([one.schema for one in supplies], query)
    with closing(OperatorEngine(query.operator, device)) as engine:
        found = columns.whole(supplies, engine)
    if work is not None:
        work(engine.work)
    return found


def _table_of(rows: Supply) -> pa.Table:
    return pa.Table.from_batches(rows.batches(), rows.schema)


def reference_rows(tables: Sequence[pa.Table], query: OperatorQuery) -> pa.Table:
    """Return the results of the reference operator, which are those of all engines."""
    columns = OperatorColumns([table.schema for table in tables], query)
    found = reference_results(query.operator, columns.arrivals(tables))
    return columns.reference(sorted(found, key=lambda result: (result.timestamp, result.key)))
