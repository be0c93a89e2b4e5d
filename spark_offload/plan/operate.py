# SPDX-License-Identifier: Apache-2.0
"""An operator that is described as data, on batch frames, as a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from host import UsageError
from host.installation import command
from host.operators.operate import OperatorColumns, OperatorQuery, accelerator_for, require_device
from spark_offload.cluster.by_value import carrying
from spark_offload.cluster.machines import Cluster, cluster_of, ship_bundle, ship_packages
from spark_offload.explanation import Explanation
from spark_offload.measures import JoinMetrics, TaskReport
from spark_offload.partitioning.columns import (
    arrow_schema,
    check_batch_frame,
    find_column,
    numbered,
    told_apart,
)
from spark_offload.partitioning.placement import require_partitions
from spark_offload.plan.accelerator import SOFTWARE
from spark_offload.plan.plan import Options, Plan, Strategy
from spark_offload.task.operators import OperatorTask
from spark_offload.task.task import Answer

__all__ = [
    "OperatorInputs",
    "make_operate_plan",
]

_SIDES = ("left", "right")


@dataclass(frozen=True)
class OperatorInputs:
    """The inputs of an operator: frames with the columns that it reads, and what becomes of them.

    Parameters
    ----------
    query : OperatorQuery
        What is computed.
    rows : tuple of DataFrame
        The time and the fields of each input, by names that Spark tells apart.
    columns : OperatorColumns
        What becomes of the columns.
    given : tuple of pa.Schema
        The columns of the inputs as Arrow.
    device : str or None
        Address of the accelerator; None for software.
    """

    query: OperatorQuery
    rows: tuple[DataFrame, ...]
    columns: OperatorColumns
    given: tuple[pa.Schema, ...]
    device: str | None

    @classmethod
    def of(
        cls, frames: Sequence[DataFrame], query: OperatorQuery, options: Options
    ) -> "OperatorInputs":
        """Check the inputs of an operator, and whether the device is one for it.

        Raises
        ------
        UsageError
            If a column, a type or the device will not do.
        """
        operator, partitions = query.operator, options.partitions
        require_partitions(partitions)
        rows, schemas = [], []
        for side, frame in enumerate(frames[: operator.inputs]):
            fields = [one.name for one in operator.schemas[side]]
            names = list(dict.fromkeys([query.time[side], *fields]))
            types = [find_column(frame.schema, name, _SIDES[side]) for name in names]
            plain = [StructField(at.name, at.dataType, True) for at in types]
            schemas.append(arrow_schema(StructType(plain), _SIDES[side]))
            known, called = told_apart(frame)
            chosen = [F.col(called[name]).alias(f"c{at}") for at, name in enumerate(names)]
            rows.append(known.select(*chosen))
        if len(frames) > operator.inputs:
            schemas += [arrow_schema(frame.schema, "right") for frame in frames[operator.inputs :]]
        columns = OperatorColumns(schemas, query)
        if columns.has_parts and not columns.part_keys and partitions not in (None, 1):
            why = "stores in turns" if operator.in_turns else "has no keys"
            raise UsageError(
                f"partitions={partitions} needs keys, and operator {operator.name!r} {why}: all "
                f"its rows meet in one {'group' if frames[0].isStreaming else 'task'}; leave "
                f"partitions out."
            )
        device = None if options.device == SOFTWARE else options.device
        assert device is None or isinstance(device, str)
        if device is not None:
            device = accelerator_for(operator, device)
            require_device(operator, device)
        return cls(query, tuple(rows), columns, tuple(schemas), device)

    @property
    def by_keys(self) -> str:
        """What rows are partitioned by; empty without keys."""
        names = ", ".join(self.query.operator.key_names or ())
        return f"by the keys {names}" if self.columns.part_keys else ""

    @property
    def first_device(self) -> str | None:
        """The accelerator of the first phase: that of an aggregate or a forward."""
        return None if self.query.operator.match is not None else self.device

    @property
    def second_device(self) -> str | None:
        """The accelerator of the second phase: that of a join."""
        return self.device if self.query.operator.match is not None else None

    def first(self, cluster: Cluster, name: str, report: TaskReport | None) -> list[DataFrame]:
        """Return the parts of each input; of a forward, its results."""
        found, has_parts = [], self.columns.has_parts
        for side, rows in enumerate(self.rows):
            output = self.columns.parts[side] if has_parts else self.columns.schema
            task = OperatorTask(
                query=self.query, given=self.given, output=output, side=side,
                device=_shipped(cluster, self.first_device), device_name=self.first_device or "",
            )  # fmt: skip
            function = carrying(cluster.luggage, task.function(name, report))
            # Columns of parts have numbers for names.
            schema = from_arrow_schema(output)
            found.append(rows.mapInArrow(function, numbered(schema) if has_parts else schema))
        return found

    def planned(self, frames: Sequence[DataFrame], strategy: Strategy, **words: Any) -> Plan:
        """Return the plan of the operator on frames, from what only one way to run has to say."""
        query, operator = self.query, self.query.operator
        unit = "" if query.unit is None else f" of {query.unit}"
        where = "tasks reduce the rows at hand" if self.first_device else "tasks join on it"
        explanation = Explanation(
            device=self.device or "none: the software engine",
            chosen=(
                f"as given; {where}"
                if self.device
                else "the host computes it; give a device for an accelerator"
            ),
            join="" if operator.match is None else f"pairs with {operator.match}",
            aggregates=tuple(str(one.name) for one in operator.outputs or ()),
            window=f"{operator.size} units{unit} of {query.time[0]!r}, every {operator.advance}",
            columns=tuple(self.columns.schema.names),
            name=f"splitjoin operate: {query}",
            **words,
        )
        return Plan(
            query=query,
            inputs=tuple(frames),
            schema=from_arrow_schema(self.columns.schema),
            explanation=explanation,
            strategy=strategy,
            own=_no_answer_of_spark,
        )


def _shipped(cluster: Cluster, device: str | None) -> str | None:
    return None if device is None else ship_bundle(cluster, device)


def make_operate_plan(
    frames: Sequence[DataFrame],
    query: OperatorQuery,
    options: Options,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the inputs, a column, a type or the device will not do.
    """
    for side, frame in enumerate(frames):
        check_batch_frame(frame, _SIDES[side])
    inputs = OperatorInputs.of(frames, query, options)
    cores = cluster_of(frames[0].sparkSession).cores if inputs.columns.part_keys else 1
    number = options.partitions or cores
    return inputs.planned(
        frames,
        partial(_answer, inputs=inputs, partitions=number),
        partitions=number,
        partitioning=f"{inputs.by_keys or 'all rows'}, of what is found of the rows at hand"
        if inputs.columns.has_parts
        else "as the rows are; nothing is kept of them",
        ordering="in each partition by window, then by keys",
    )


def _answer(plan: Plan, *, inputs: OperatorInputs, partitions: int) -> Answer:
    cluster = cluster_of(inputs.rows[0].sparkSession)
    ship_packages(cluster)
    first, read_first = cluster.gather_tasks()
    parts = inputs.first(cluster, plan.name, first)
    if not inputs.columns.has_parts:
        return reduce(DataFrame.unionAll, parts), read_first
    shared = 1 + len(inputs.columns.part_keys)
    placed = parts[0] if len(parts) == 1 else _tagged(parts, shared)
    keys = placed.columns[len(parts) > 1 :][1:shared]
    placed = placed.repartition(partitions, *keys) if keys else placed.coalesce(1)
    task = OperatorTask(
        query=inputs.query, given=inputs.given, output=inputs.columns.schema,
        device=_shipped(cluster, inputs.second_device), device_name=inputs.second_device or "",
    )  # fmt: skip
    answer, read_second = task.answer(placed, plan.name, plan.schema)
    return answer, lambda: JoinMetrics((*read_first().tasks, *read_second().tasks))


def _tagged(parts: Sequence[DataFrame], shared: int) -> DataFrame:
    """Return the parts of both inputs as one frame: side, time, keys, left fields, right fields.

    A task finds them by the first letters of their names: s is what both sides have.
    """
    sides = []
    for side, frame in enumerate(parts):
        own = range(len(frame.columns) - shared)
        names = [*(f"s{at}" for at in range(shared)), *(f"{'lr'[side]}{at}" for at in own)]
        sides.append(frame.toDF(*names).select(F.lit(side).alias("side"), *names))
    # Each side lacks the fields of the other one, which are null there.
    return sides[0].unionByName(sides[1], allowMissingColumns=True)


def _no_answer_of_spark(*_: DataFrame) -> DataFrame:
    """Raise: Spark has no operator of its own to compare with."""
    raise UsageError(
        f"Spark by itself has no such operator to verify it with; compare files with the reference "
        f"operator: {command('host operate DESCRIPTION.py --verify')}."
    )
