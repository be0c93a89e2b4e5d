# SPDX-License-Identifier: Apache-2.0
"""Base classes of intermediate operations, with their effects on flags and columns."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from host.pipeline.flags import Effect, Traits
from host.runtime import ExecStreamGraph, Stream

__all__ = ["Lazy", "Operation", "Place", "Stateful"]


@dataclass(frozen=True)
class Place:
    """The place of a stateful operation in a pipeline.

    Parameters
    ----------
    traits : Traits
        Known properties of the operation's input.
    schema : Schema
        Schema of the operation's input.
    order_matters : bool
        Whether the order of the operation's output is observed.
    """

    traits: Traits
    schema: pa.Schema
    order_matters: bool = True


class Lazy(ABC):
    """A step of a pipeline before any input has been bound.

    Attributes
    ----------
    checks_order : bool
        Whether the step itself raises an error if it relies on an order that its input has not.
    """

    checks_order = False

    @abstractmethod
    def bound(self) -> "Operation":
        """Return the step for one execution; a step with inputs of its own binds them now."""


class Operation(Lazy):
    """A step of a pipeline in an execution.

    Attributes
    ----------
    needs_order : bool
        Whether the output depends on the order of the input.
    """

    needs_order = False

    def bound(self) -> "Operation":
        return self

    @abstractmethod
    def effect(self, traits: Traits) -> Effect:
        """Return the operation's effect on the flags of an input with these ``traits``."""

    def traits(self, traits: Traits) -> Traits:
        """Return the traits of the operation's output."""
        return traits.after(self.effect(traits))

    @abstractmethod
    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the operation's output."""


class Stateful(Operation):
    """An operation that must see other rows; it ends a segment."""

    needs_order = True

    @abstractmethod
    def reason(self, place: Place) -> str:
        """Return how the operation is carried out, and why."""

    @abstractmethod
    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        """Add the streams behind ``producer``; return the last one."""

    def vanishes(self, place: Place) -> bool:
        """Return whether the operation would change nothing."""
        del place  # by default, an operation changes something everywhere
        return False
