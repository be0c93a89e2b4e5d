# SPDX-License-Identifier: Apache-2.0
"""An intermediate operation: what it does to the flags and columns of a stream."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from host.pipeline.flags import Effect, Traits
from host.runtime import ExecStreamGraph, Stream

__all__ = ["Lazy", "Operation", "Place", "Stateful"]


@dataclass(frozen=True)
class Place:
    """Where a stateful operation stands.

    Parameters
    ----------
    traits : Traits
        What is known of its input.
    schema : Schema
        Columns of its input.
    order_matters : bool
        Whether anybody can tell the order of its output.
    """

    traits: Traits
    schema: pa.Schema
    order_matters: bool = True


class Lazy(ABC):
    """A step of a pipeline before anything has been looked at."""

    @abstractmethod
    def bound(self) -> "Operation":
        """Return the step for one execution; one with inputs of its own binds them now."""


class Operation(Lazy):
    """A step of a pipeline in an execution.

    Attributes
    ----------
    needs_order : bool
        Whether its own output depends on the order of its input.
    """

    needs_order = False

    def bound(self) -> "Operation":
        return self

    @abstractmethod
    def effect(self, traits: Traits) -> Effect:
        """Return what it does to the flags of its input, which has these ``traits``."""

    def traits(self, traits: Traits) -> Traits:
        """Return the traits of its output."""
        return traits.after(self.effect(traits))

    @abstractmethod
    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of its output."""


class Stateful(Operation):
    """An operation that must see other rows; it ends a segment."""

    needs_order = True

    @abstractmethod
    def reason(self, place: Place) -> str:
        """Say how it is done and why."""

    @abstractmethod
    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        """Add the streams behind ``producer``; return the last one."""

    def vanishes(self, place: Place) -> bool:
        """Whether it would change nothing."""
        del place  # it changes something wherever it stands
        return False
