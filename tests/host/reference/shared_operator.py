# SPDX-License-Identifier: Apache-2.0
"""The generalized operator over several instances that share its state: STRETCH's Algorithm 4."""

from collections.abc import Callable
from dataclasses import dataclass

from host.reference.operator import (
    Arrival,
    GeneralOperator,
    Key,
    OperatorInstance,
    Result,
    WindowState,
)

# Instances are added and removed, and keys change hands, from an exact watermark on and without
# moving state. Here the instances take turns for every tuple, so the barrier of Algorithm 4 is
# where all of them have taken the tuple before.

#: f_mu: from a key to the number of the instance that is responsible for it.
Mapping = Callable[[Key], int]


@dataclass(frozen=True)
class Epoch:
    """A set of instances and who is responsible for which key.

    Parameters
    ----------
    instances : tuple of int
        Numbers of the instances.
    mapping : callable
        From each key to one of them.
    """

    instances: tuple[int, ...]
    mapping: Mapping


class SharedOperator:
    """Instances of an operator with one shared state: processVSN.

    Parameters
    ----------
    operator : GeneralOperator
    epoch : Epoch
        The first epoch.
    """

    def __init__(self, operator: GeneralOperator, epoch: Epoch) -> None:
        self._operator = operator
        self._state = WindowState(operator.size, operator.advance, operator.inputs)
        self._next: tuple[int, Epoch] | None = None
        self._instances: dict[int, OperatorInstance] = {}
        self._begin(epoch)

    @property
    def instances(self) -> tuple[int, ...]:
        """Numbers of the instances of the current epoch."""
        return tuple(self._instances)

    def reconfigure(self, after: int, epoch: Epoch) -> None:
        """Take a control tuple: ``epoch`` begins when the watermark grows beyond ``after``."""
        self._next = after, epoch

    def process(self, arrival: Arrival) -> list[Result]:
        """Let all instances take a tuple; return their results, merged by time (TB_out)."""
        watermark = arrival.timestamp if arrival.watermark is None else arrival.watermark
        before = max((one.watermark or 0 for one in self._instances.values()), default=0)
        if self._next is not None and watermark > before and watermark > self._next[0]:
            self._begin(self._next[1])
            self._next = None
        return self._merged(lambda instance: instance.process(arrival))

    def finish(self) -> list[Result]:
        """Return the results of all windows that hold a tuple: the end of the stream."""
        return self._merged(lambda instance: instance.finish())

    def _begin(self, epoch: Epoch) -> None:
        """Change the instances; those that stay keep their watermarks, new ones take one over."""
        known = next(iter(self._instances.values()), None)
        self._instances = {
            number: OperatorInstance(
                self._operator,
                self._state,
                lambda key, number=number: epoch.mapping(key) == number,  # type: ignore[misc]
            )
            for number in epoch.instances
        }
        if known is not None:
            for instance in self._instances.values():
                instance.take_over(known)

    def _merged(self, step: Callable[[OperatorInstance], list[Result]]) -> list[Result]:
        results = [result for one in self._instances.values() for result in step(one)]
        return sorted(results, key=lambda result: result.timestamp)
