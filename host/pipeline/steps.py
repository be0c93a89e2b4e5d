# SPDX-License-Identifier: Apache-2.0
"""Plan the operations of a pipeline: the properties before and after each, and the decisions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from host.pipeline.flags import Traits
from host.pipeline.operations import (
    Limited,
    Operation,
    Place,
    Sorted,
    Stateful,
    Stateless,
    Unordered,
)

__all__ = ["Step", "fused_runs", "plan_steps", "runs_ahead", "stops_early"]


@dataclass(frozen=True)
class Step:
    """An operation of a pipeline in its place.

    Parameters
    ----------
    operation : Operation
        The operation.
    place : Place
        Known properties of the operation's input, and whether the order of its output matters.
    after : Traits
        Known properties of the operation's output.
    output : Schema
        Schema of the operation's output.
    segment : int
        Number of the segment, from one; a stateful operation that does not vanish ends a segment.
    """

    operation: Operation
    place: Place
    after: Traits
    output: pa.Schema
    segment: int

    @property
    def vanishes(self) -> bool:
        """Whether the operation has no effect in this place and becomes no stream."""
        if isinstance(self.operation, Stateful):
            return self.operation.vanishes(self.place)
        return isinstance(self.operation, Unordered)

    @property
    def reason(self) -> str:
        """What the operation becomes, and why."""
        if isinstance(self.operation, Stateful):
            return self.operation.reason(self.place)
        if isinstance(self.operation, Stateless):
            return ""
        return "vanishes: it only says that the order does not matter"


def plan_steps(
    operations: Sequence[Operation], traits: Traits, schema: pa.Schema, *, ordered: bool
) -> list[Step]:
    """Return the steps of a pipeline, from the known properties of its source.

    Parameters
    ----------
    operations : sequence of Operation
        Operations, in order.
    traits : Traits
        Properties of the source.
    schema : Schema
        Schema of the source.
    ordered : bool
        Whether the terminal operation observes the order.
    """
    matters = _order_matters(operations, ordered)
    steps: list[Step] = []
    segment = 1
    for operation, wanted in zip(operations, matters, strict=True):
        if not wanted:
            # The order is not observed: the operations before need not keep it for its own sake.
            traits = traits.unordered()
        step = Step(
            operation,
            Place(traits, schema, wanted),
            operation.traits(traits),
            operation.schema(schema),
            segment,
        )
        steps.append(step)
        traits, schema = step.after, step.output
        segment += isinstance(operation, Stateful) and not step.vanishes
    return steps


def _order_matters(operations: Sequence[Operation], ordered: bool) -> list[bool]:
    """Return, for each operation, whether the order of its output is observed by a later one."""
    result = []
    for operation in reversed(operations):
        if isinstance(operation, Unordered):
            ordered = False
        result.append(ordered)
        ordered = ordered or operation.needs_order
    return result[::-1]


def fused_runs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps that do not vanish; neighbouring stateless steps come together."""
    run: list[Step] = []
    for step in steps:
        if step.vanishes:
            continue
        if isinstance(step.operation, Stateless):
            run.append(step)
            continue
        if run:
            yield run
        yield [step]
        run = []
    if run:
        yield run


def runs_ahead(steps: Sequence[Step], ahead: bool) -> bool:
    """Return whether the streams before ``steps`` may make more than one batch at a time.

    A join gathers small batches, so several should be available. A limit should get no more batches
    than it needs.

    Parameters
    ----------
    steps : sequence of Step
        The following steps; the first stateful one decides.
    ahead : bool
        Result if there is no stateful step.
    """
    for step in steps:
        if isinstance(step.operation, Stateful) and not step.vanishes:
            return not isinstance(step.operation, Limited)
    return ahead


def stops_early(steps: Sequence[Step]) -> bool:
    """Return whether a limit can be reached before the first step has seen all of its input."""
    for step in steps:
        if isinstance(step.operation, Limited | Sorted) and not step.vanishes:
            return isinstance(step.operation, Limited)
    return False
