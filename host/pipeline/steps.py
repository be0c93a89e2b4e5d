# SPDX-License-Identifier: Apache-2.0
"""The operations of a pipeline with what is known before and after each, and what is decided."""

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
    """One operation, in its place.

    Parameters
    ----------
    operation : Operation
        What is done.
    place : Place
        Where it stands: what is known of its input, and whether order matters behind it.
    after : Traits
        What is known of its output.
    output : Schema
        Of its output.
    segment : int
        Counted from one; a segment ends with a stateful operation that does something.
    """

    operation: Operation
    place: Place
    after: Traits
    output: pa.Schema
    segment: int

    @property
    def vanishes(self) -> bool:
        """Whether nothing is left of it when the pipeline runs."""
        if isinstance(self.operation, Stateful):
            return self.operation.vanishes(self.place)
        return isinstance(self.operation, Unordered)

    @property
    def reason(self) -> str:
        """What becomes of it, and why."""
        if isinstance(self.operation, Stateful):
            return self.operation.reason(self.place)
        if isinstance(self.operation, Stateless):
            return ""
        return "vanishes: it only says that the order does not matter"


def plan_steps(
    operations: Sequence[Operation], traits: Traits, schema: pa.Schema, *, ordered: bool
) -> list[Step]:
    """Return the steps of a pipeline, given what is known of its source.

    Parameters
    ----------
    operations : sequence of Operation
        In order.
    traits : Traits
        Of the source.
    schema : Schema
        Of the source.
    ordered : bool
        Whether the terminal operation can tell the order.
    """
    matters = _order_matters(operations, ordered)
    steps: list[Step] = []
    segment = 1
    for operation, wanted in zip(operations, matters, strict=True):
        if not wanted:
            # Nobody can tell: what comes before need not keep any order for its own sake.
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
    """For each operation, whether its output's order can be told by anyone behind it."""
    result = []
    for operation in reversed(operations):
        if isinstance(operation, Unordered):
            ordered = False
        result.append(ordered)
        ordered = ordered or operation.needs_order
    return result[::-1]


def fused_runs(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps that are left, neighbours that are stateless together."""
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
    """Whether what comes before ``steps`` may make more batches than one at a time.

    A join puts small batches together, so they should be there; a limit wants none too many.

    Parameters
    ----------
    steps : sequence of Step
        What is behind; the first stateful one among them decides.
    ahead : bool
        The answer if there is none.
    """
    for step in steps:
        if isinstance(step.operation, Stateful) and not step.vanishes:
            return not isinstance(step.operation, Limited)
    return ahead


def stops_early(steps: Sequence[Step]) -> bool:
    """Whether a limit can be reached before the first step has seen all of its input."""
    for step in steps:
        if isinstance(step.operation, Limited | Sorted) and not step.vanishes:
            return isinstance(step.operation, Limited)
    return False
