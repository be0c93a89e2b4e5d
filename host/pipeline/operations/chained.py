# SPDX-License-Identifier: Apache-2.0
"""Operations that become a chain of streams."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from host.pipeline.operations.operation import Place, Stateful
from host.runtime import ExecStreamGraph, Stream, StreamParams

__all__ = ["Chained", "Decision"]

#: Streams with their parameters, in the order of the chain.
Chain: TypeAlias = Sequence[tuple[Stream, StreamParams]]


@dataclass(frozen=True)
class Decision:
    """The chain that an operation becomes, given the known properties of its input.

    Parameters
    ----------
    chain : sequence of (Stream, StreamParams)
        Streams of the chain; empty if the operation would change nothing.
    reason : str
        Reason for the choice, for the plan.
    """

    chain: Chain
    reason: str


class Chained(Stateful):
    """A stateful operation that becomes a chain of streams, or none."""

    @abstractmethod
    def decide(self, place: Place) -> Decision:
        """Choose the chain of streams."""

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
