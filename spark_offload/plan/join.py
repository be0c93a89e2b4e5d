# SPDX-License-Identifier: Apache-2.0
"""The join of batch frames over a window as a plan: its inputs, what is refused, where it runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import starmap
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import CountWindow, UsageError
from host.devices.bundles import known_accelerator
from host.query.quantities import Duration
from host.query.queries import Query, Term
from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.cluster.machines import cluster_of, ship_bundle, ship_packages
from spark_offload.cluster.query_plans import (
    FILTERING,
    NO_ESTIMATE,
    estimated_bytes,
    estimated_rows,
    is_plain_read,
    partition_settings,
)
from spark_offload.errors import raised
from spark_offload.explanation import Explanation, InputSize, estimate_cost, join_size
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    equal_columns,
    joined_schema,
    require_columns,
    require_equal_bytes,
    task_columns,
    told_apart,
)
from spark_offload.partitioning.halos import count_halos
from spark_offload.partitioning.placement import Facts, Placement, choose_placement
from spark_offload.partitioning.ranges import Cuts, OrderProfile, lazy_cuts, profile_order
from spark_offload.partitioning.stored import StoredRanges, stored_inputs, wrong_interval
from spark_offload.partitioning.tagged import TaggedInputs, can_be_cut, gauge_width, window_width
from spark_offload.plan.accelerator import (
    SOFTWARE,
    Choice,
    QueryCheck,
    check_query,
    serving,
    software_serves,
)
from spark_offload.plan.plan import Options, Plan
from spark_offload.task.handover import count_windows
from spark_offload.task.join import DeviceTask, JoinTask
from spark_offload.task.rows import SideCheck, TaggedTask
from spark_offload.task.task import Answer, in_utc
from spark_offload.verification.own_queries import Difference, difference_of, own_join

__all__ = [
    "Intervals",
    "JoinInputs",
    "OnDevices",
    "answer_in_tasks",
    "checked_by_rules",
    "checked_for_disorder",
    "checked_for_nulls",
    "longest_of",
    "make_plan",
    "window_text",
]

# The two inputs of a join: what is known of them, and both as one tagged frame.


@dataclass(frozen=True)
class Intervals:
    """What is required of the intervals of both inputs of an overlap join.

    None ends before it starts, and none is longer than the longest. One without a start or an end
    passes.

    Parameters
    ----------
    columns : (str, str), (str, str)
        For each side, the columns with the start and the end.
    longest : int or Duration
        Largest length.
    """

    columns: tuple[tuple[str, str], tuple[str, str]]
    longest: int | Duration

    def checked(self, left: DataFrame, right: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Return frames that fail on an interval that will not do.

        Raises
        ------
        UsageError
            If two columns have no difference, or no such one.
        """
        return self._checked(left, Side.R), self._checked(right, Side.S)

    def _checked(self, frame: DataFrame, side: Side) -> DataFrame:
        names = self.columns[side]
        rows, (ends, begins) = _columns(frame, names)
        holds = _length(frame, names, self.longest).holds(ends, begins)
        texts = wrong_interval(("left", "right")[side], names, self.longest)
        fails = raised(UsageError, texts[0], begins, texts[1], ends, texts[2]).cast("boolean")
        missing = begins.isNull() | ends.isNull()
        fine = F.when(missing | F.coalesce(holds, F.lit(False)), True).otherwise(fails)
        checked = rows.where(fine)
        return checked if rows is frame else checked.toDF(*frame.columns)


@dataclass(frozen=True)
class JoinInputs(TaggedInputs):
    """The inputs of one join, what is known of them, and both as one frame.

    Parameters
    ----------
    intervals : Intervals, optional
        What is required of the intervals of an overlap join, where tasks read the rows.
    """

    intervals: Intervals | None = None

    def facts(self, *, fills: bool = False, counted: bool = False) -> Facts:
        """Return what the placement of the rows is chosen by.

        Parameters
        ----------
        fills : bool
            Whether a task's window must hold few rows.
        counted : bool
            Whether Spark reads the tagged rows before the join, to count windows.
        """
        order_type, frames = self.order_type, (self.left, self.right)
        cut = can_be_cut(order_type)
        return Facts(
            cores=cluster_of(self.left.sparkSession).cores,
            sizes=lambda: (estimated_bytes(self.left), estimated_bytes(self.right)),
            plain=lambda: all(map(is_plain_read, frames)),
            width=window_width(self.query, order_type) if cut and self.query.is_timed else None,
            order_type=None if cut else order_type.simpleString(),
            profile=lambda ranges: profile_order(self.times(), ranges),
            rows=self._estimated_rows,
            filtered=lambda: all(is_plain_read(frame, FILTERING) for frame in frames),
            settings=lambda: partition_settings(self.left.sparkSession),
            fills=fills,
            stored=lambda: "the windows are counted before" if counted else self._stored(),
        )

    def _stored(self) -> StoredRanges | str:
        columns = None if self.intervals is None else self.intervals.columns
        return stored_inputs(self.left, self.right, self.query, columns)

    def profile(self, ranges: int = 1) -> OrderProfile | None:
        """Read how the rows of both inputs lie in time; None if their times cannot be cut.

        Parameters
        ----------
        ranges : int
            Most ranges that the profile will be asked for.
        """
        return profile_order(self.times(), ranges) if can_be_cut(self.order_type) else None

    def known_bytes(self) -> tuple[int | None, int | None]:
        """Return Spark's estimates of the bytes of both inputs, where it has any."""
        sizes = estimated_bytes(self.left), estimated_bytes(self.right)
        left, right = (None if size >= NO_ESTIMATE else size for size in sizes)
        return left, right

    def placed(self, placement: Placement) -> tuple[DataFrame, dict[str, Any]]:
        """Return the tagged frame, placed as chosen, and what tasks must know of its rows.

        Ranges of rows are counted out here. Where tasks read the rows by themselves, the frame
        holds the number of each range.
        """
        if placement.stored is not None:
            frame = placement.stored.frame(self.left.sparkSession)
            return frame, {"stored": placement.stored}
        inputs, query = replace(self, keys=placement.keys), self.query
        if placement.rule is not None:
            width, rows = window_width(query, self.order_type), self._estimated_rows()
            cuts = lazy_cuts(inputs.times(), placement.rule, width, rows)
            return inputs.in_ranges(cuts, placement.rule.ranges, placement.partitions), {}
        if placement.starts is None:
            return inputs.in_partitions(placement.partitions, direct=placement.direct), {}
        assert isinstance(query.window, CountWindow)  # others are cut when an action runs
        halos = count_halos(inputs.times(), placement.starts, query.window.size, query.how)
        cuts, ranges = Cuts((halos,)).column(self.left.sparkSession), len(halos.starts) + 1
        return inputs.in_ranges(cuts, ranges, placement.partitions), {"halos": halos.counts}

    def _estimated_rows(self) -> int | None:
        left, right = (estimated_rows(frame) for frame in (self.left, self.right))
        return None if left is None or right is None else left + right


def answer_in_tasks(
    plan: Plan,
    query: Query,
    placement: Placement,
    kind: Callable[..., TaggedTask],
    **known: Any,
) -> Answer:
    """Return what tasks make of the inputs of a plan, with what no task sees checked.

    A task sees the order of the rows of its own keys, or of its own range of time, only. A range
    for a count-based window begins with the last row before it, which need not be of the same
    partition of the input. A null is seen in any row. Whoever reads a row group sees the order of
    all its rows.

    Parameters
    ----------
    plan : Plan
        What is answered.
    query : Query
        The join whose pairs are the answer, or candidates for it.
    placement : Placement
        How the rows are partitioned.
    kind : callable
        Makes the description of the tasks.
    known
        What only these tasks must know.
    """
    left, right = plan.inputs
    frame, of_rows = JoinInputs(left, right, query).placed(placement)
    task = kind(
        query=query,
        **task_columns(left, right, plan.schema),
        **of_rows,
        **known,
    )
    answer, read = task.answer(frame, plan.name, plan.schema)
    apart = query.per_partition and placement.partitions > 1
    in_parts = any(placement.keys) or placement.rule is not None or apart
    if query.sorted and in_parts and placement.stored is None:
        answer = checked_for_disorder(answer, left, right, query)
    return answer, read


# Columns of a frame that hold intervals: how long the longest one is, and what is refused.


def longest_of(
    frames: tuple[DataFrame, DataFrame], intervals: tuple[tuple[str, str], tuple[str, str]]
) -> int | Duration:
    """Return the length of the longest interval of both frames, which Spark reads for that.

    Intervals without a start or an end, or that end before they start, do not count.
    """
    lengths = []
    for frame, names in zip(frames, intervals, strict=True):
        difference = _length(frame, names, None)
        rows, columns = _columns(frame, names)
        length = F.try_subtract(*(difference.number(column, 0) for column in columns))
        lengths.append(rows.agg(F.coalesce(F.max(length), F.lit(0)).alias("length")))
    row = lengths[0].crossJoin(lengths[1].withColumnRenamed("length", "other")).first()
    assert row is not None
    longest = max(0, int(row["length"]), int(row["other"]))
    end = difference.types.left
    return Duration(longest * end.tick) if end.kind.is_temporal else longest


def _length(frame: DataFrame, names: tuple[str, str], longest: int | Duration | None) -> Difference:
    """Return the length of an interval as a difference that lies between zero and the longest."""
    start, end = names
    arrow = arrow_schema(frame.schema, "left")
    return difference_of(Term(end, start, 0, longest), (frame.schema, frame.schema), (arrow, arrow))


def _columns(frame: DataFrame, names: tuple[str, str]) -> tuple[DataFrame, tuple[Column, Column]]:
    """Return a frame in which Spark finds the end and the start of an interval, and these two."""
    rows, places = told_apart(frame)
    return rows, (F.col(places[names[1]]), F.col(places[names[0]]))


# The order columns of whole inputs, checked by Spark jobs where no device sees their rows pass.
#
# A device raises if a row has no place in time, or goes back in time although its input was
# declared sorted. Spark's own join knows neither rule, and the partitions of a join by key see
# disorder among their own rows only. So the checks run beside the join, as frames without rows
# that fail if they have to, and the answer is the union of both. Conditions inside the join would
# not do: Spark skips them with the rows that it need not read, such as those that stand opposite
# to an empty input.


def checked_by_rules(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, an answer of Spark itself, which fails where a task of this kit would.

    Takes what :func:`checked_for_nulls` and :func:`checked_for_disorder` take.
    """
    if query.sorted:
        answer = checked_for_disorder(answer, left, right, query)
    # Nulls are told first, as by a task.
    return checked_for_nulls(answer, left, right, query)


def checked_for_nulls(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input has no place in time.

    The checks are the first partitions of the frame, so that reading a few rows runs them too. An
    input whose order column cannot hold nulls, by what Spark knows of it, is not checked.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. Each is read once more, except for the parts that have no null by Parquet's
        statistics.
    query : Query
        Names the order columns.
    """
    checks = []
    for frame, side, order in _inputs(left, right, query):
        if frame.schema[order].nullable:
            rows = _null_row(frame, order)
            first = rows.columns.index("c0")
            checks.append((rows, SideCheck(side, order, False, frame.columns, first)))
    return _behind(checks, answer)


def checked_for_disorder(
    answer: DataFrame, left: DataFrame, right: DataFrame, query: Query
) -> DataFrame:
    """Return ``answer``, which fails if a row of an input goes back in time.

    As with :func:`checked_for_nulls` the checks come first. Rows without a place in time are left
    out.

    Parameters
    ----------
    answer : DataFrame
        The join of the inputs.
    left, right : DataFrame
        The inputs. The order column of each is read once more.
    query : Query
        Names the order columns, and tells whether each partition of an input is sorted by itself.
    """
    checks = [
        (_suspects(frame, order), SideCheck(side, order, True, (), 0, query.per_partition))
        for frame, side, order in _inputs(left, right, query)
    ]
    return _behind(checks, answer)


def _inputs(
    left: DataFrame, right: DataFrame, query: Query
) -> Iterator[tuple[DataFrame, str, str]]:
    """Yield each input with the name of its side and its order column."""
    yield from zip((left, right), ("left", "right"), query.time, strict=True)


def _null_row(frame: DataFrame, order: str) -> DataFrame:
    """Return the first row without a place in time, whole, because the message shows it.

    Rows are numbered behind the filter: in front of it the number, which depends on where Spark
    reads a row, would keep Spark from handing the filter to the reader of the files.
    """
    # Columns are called by their places: no name of the user's can clash or need quoting.
    places = [f"c{index}" for index in range(len(frame.columns))]
    time = F.col(places[frame.columns.index(order)])
    nulls = frame.toDF(*places).where(time.isNull())
    numbered = nulls.select(F.monotonically_increasing_id().alias("row"), time.alias("order"), "*")
    return numbered.orderBy("row").limit(1)


def _suspects(frame: DataFrame, order: str) -> DataFrame:
    """Return few rows, sorted by time, whose numbers fall if any row goes back in time."""
    places = [f"c{index}" for index in range(len(frame.columns))]
    rows = frame.toDF(*places).select(
        F.monotonically_increasing_id().alias("row"),
        F.col(places[frame.columns.index(order)]).alias("order"),
    )
    rows = rows.where(F.col("order").isNotNull())
    suspects = rows.mapInArrow(splitjoin_order_suspects, rows.schema).repartition(1)
    return suspects.sortWithinPartitions("order", "row")


def _behind(checks: Sequence[tuple[DataFrame, SideCheck]], answer: DataFrame) -> DataFrame:
    """Return ``answer`` behind frames without rows, which fail if rows break a rule."""
    if checks:
        ship_packages(cluster_of(answer.sparkSession))

    def empty(rows: DataFrame, check: SideCheck) -> DataFrame:
        def splitjoin_order_check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in in_utc(batches):
                check.see(batch, pa.array([True] * batch.num_rows))
            yield from ()

        return rows.mapInArrow(splitjoin_order_check, answer.schema)

    return reduce(DataFrame.unionAll, [*starmap(empty, checks), answer])


def splitjoin_order_suspects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave as few rows as tell whether all of them are in order; Spark shows this in plans.

    These are the first and the last row of every batch, which say whether batches follow one
    another, and inside a batch the first row that is less than the one before.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        order = batch.column("order")
        fall = pc.index(pc.less(order[1:], order[:-1]), True).as_py()
        places = {0, batch.num_rows - 1}
        places |= {fall, fall + 1} if fall >= 0 else set()
        yield batch.take(pa.array(sorted(places)))


# The join as a plan: on an accelerator, or the software engine.


@dataclass(frozen=True, kw_only=True)
class OnDevices:
    """The strategy of a join of batch frames whose tasks have a device each.

    Parameters
    ----------
    query : Query
        What is joined.
    choice : Choice
        The devices.
    placement : Placement
        How the rows are partitioned.
    options : Options
        Whether every result's latency is measured, and where tasks tell how far they are.
    width : int or None
        Of a time-based window that can outgrow the device, as a difference of order numbers.
    goes_on : bool
        Whether a task goes on in software from the first row that its device cannot hold.
    """

    query: Query
    choice: Choice
    placement: Placement
    options: Options
    width: int | None
    goes_on: bool

    def __call__(self, plan: Plan) -> Answer:
        trace = self.options.trace
        return self.answer(plan, JoinTask, self.goes_on, trace=trace, width=self.width)

    def answer(self, plan: Plan, kind: type[DeviceTask], goes_on: bool, **known: Any) -> Answer:
        """Return what tasks of a kind, which have devices, make of the inputs of a plan."""
        cluster = cluster_of(plan.inputs[0].sparkSession)
        answer, read = answer_in_tasks(
            plan,
            self.query,
            self.placement,
            kind,
            devices=self.choice.source.shipped(cluster),
            progress=self.options.progress,
            software=ship_bundle(cluster, SOFTWARE) if goes_on else None,
            **known,
        )
        return answer, lambda: read().on_hardware(self.choice.manifest)


def _sized(plan: Plan, count: bool, *, on: OnDevices) -> Explanation:
    """Return the explanation with sizes and cost, from how the rows lie in time, if known."""
    left, right = plan.inputs
    query, placement, explanation = on.query, on.placement, plan.explanation
    inputs = JoinInputs(left, right, query)
    profile, rule = placement.profile, placement.rule
    # Software counts no cycles.
    manifest = None if on.choice.uri.startswith(SOFTWARE) else on.choice.manifest
    # What the accelerator would take where the software engine joins.
    instead = None if on.choice.has_limits else known_accelerator(query)
    if profile is None and count:
        profile = inputs.profile(1 if rule is None else rule.ranges)
    size = None if profile is None else join_size(query, profile, inputs.facts().width)
    # Keys are divided among devices; ranges of time divide only the rows.
    devices = placement.partitions if any(placement.keys) else 1
    cost = estimate_cost(left, right, query, manifest or instead, size, devices)
    found = replace(
        explanation,
        inputs=InputSize(None if profile is None else profile.rows, inputs.known_bytes()),
        cost=replace(cost, is_elsewhere=instead is not None),
    )
    if rule is None or profile is None:
        return found
    return replace(found, partitioning=f"{found.partitioning}: {rule.cut(profile).note}")


def make_plan(
    left: DataFrame,
    right: DataFrame,
    query: Query,
    options: Options,
    check: QueryCheck = check_query,
    intervals: Intervals | None = None,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Jobs of Spark run for what an answer or an accelerator would be wrong without. Ranges of time
    for a count-based window are cut by the ranks of rows, so the order columns are read. If
    ``build`` asks for an accelerator that holds the windows, these are counted, so the columns of
    the order and of equalities are read.

    Parameters
    ----------
    check : callable
        Whether the accelerator can serve the query.
    intervals : Intervals, optional
        What is required of the intervals of an overlap join.

    Raises
    ------
    UsageError
        If an input, a column, a type, the window or the device will not do.
    """
    check_batch_frame(left, "left")
    check_batch_frame(right, "right")
    require_columns(left, right, query)
    require_equal_bytes(left.schema, right.schema, equal_columns(query))
    schema = joined_schema(left.schema, right.schema, query)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    session = left.sparkSession
    choice = serving(query, options, session, schemas, check)
    inputs = JoinInputs(left, right, query, intervals=intervals)
    counted = choice.is_simulated and options.build and query.is_timed
    facts = inputs.facts(fills=choice.has_limits, counted=counted)
    placement = choose_placement(
        query, facts, partitions=options.partitions, partition_by=options.partition_by
    )
    if intervals is not None and placement.stored is None:
        left, right = intervals.checked(left, right)
        inputs = JoinInputs(left, right, query)
    if choice.is_simulated and options.build and facts.width is not None:
        ship_packages(cluster_of(session))
        tuples = count_windows(inputs.placed(placement)[0], facts.width)
        if tuples > choice.manifest.capacity:
            choice = serving(query, options, session, schemas, check, tuples=tuples)
    width = gauge_width(query, inputs.order_type) if choice.has_limits else None
    goes_on = not options.strict and width is not None and software_serves(query, choice, *schemas)
    devices = OnDevices(
        query=query,
        choice=choice,
        placement=placement,
        options=options,
        width=width,
        goes_on=goes_on,
    )
    explanation = Explanation(
        partitions=placement.partitions,
        partitioning=placement.reason,
        window=window_text(
            query,
            met="rows of the other side",
            beyond="from what the device cannot hold, the task goes on in software",
            goes_on=goes_on,
        ),
        arrival=(
            f"by left {query.time[0]!r} and right {query.time[1]!r}; "
            "on a tie left before right, then input order"
        ),
        ordering=(
            _by_arrival(placement, query.how)
            if query.ordering.period == 1
            else f"in each partition {query.ordering.meaning}"
        ),
        columns=tuple(schema.names),
        **choice.words(query),
    )
    return Plan(
        query=query,
        inputs=(left, right),
        schema=schema,
        explanation=explanation,
        strategy=devices,
        own=partial(own_join, query=query),
        sized=partial(_sized, on=devices),
        follows_time=placement.follows_time,
        manifest=choice.manifest,
    )


def _by_arrival(placement: Placement, how: JoinType) -> str:
    by_arrival = "by the arrival of the later row of a pair" if how.has_pairs else "by arrival"
    if how.has_pairs and how is not JoinType.INNER:
        by_arrival += ", a row alone where it leaves the window"
    return placement.ordering(by_arrival)


def window_text(query: Query, *, met: str, beyond: str, goes_on: bool) -> str:
    """Say which rows a row meets.

    Parameters
    ----------
    query : Query
        The join.
    met : str
        What they are called.
    beyond : str
        What happens to rows that the device cannot hold, if software goes on.
    goes_on : bool
        Whether it does.
    """
    if not query.is_timed:
        return f"the last {query.rows:,} rows of the other side"
    left, right = query.time
    within = f"with |left.{left} - right.{right}| <= {query.width}"
    if query.advance is not None:
        within = f"in {query.windows_text}"
    return f"{met} {within}{f'; {beyond}' if goes_on else ''}"
