# SPDX-License-Identifier: Apache-2.0
"""Operations that become streams one behind the other."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from host.pipeline.operations.operation import Place, Stateful
from host.runtime import ExecStreamGraph, Stream, StreamParams

__all__ = ["Chained", "Decision"]

#: Streams with their parameters, one behind the other.
Chain: TypeAlias = Sequence[tuple[Stream, StreamParams]]


@dataclass(frozen=True)
class Decision:
    """What becomes of a chained operation, given what is known of its input.

    Parameters
    ----------
    chain : sequence of (Stream, StreamParams)
        The streams that it becomes; none if it would change nothing.
    reason : str
        Why, for the plan.
    """

    chain: Chain
    reason: str


class Chained(Stateful):
    """A stateful operation that becomes streams one behind the other, or none."""

    @abstractmethod
    def decide(self, place: Place) -> Decision:
        """Choose the streams."""

    def reason(self, place: Place) -> str:
        return self.decide(place).reason

    def vanishes(self, place: Place) -> bool:
        return not self.decide(place).chain

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        for stream, params in self.decide(place).chain:
            graph.add(stream, params)
            graph.connect(producer, stream)
            producer = stream
        return producer

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema
