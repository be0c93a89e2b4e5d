# SPDX-License-Identifier: Apache-2.0
"""Epochs of an elastic join: which cores are active, and from which place of the stream on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Epoch", "EpochSchedule", "Epochs", "ListedEpochs"]


@dataclass(frozen=True)
class Epoch:
    """A stretch of the stream with the same active cores and the same mapping.

    The mapping is the order of ``cores``: tuple after tuple of each side is stored by the next core
    of the list. An epoch takes effect right before the first tuple that has passed its gamma, which
    is a place (``after``), a time (``beyond``), or both. Cores that were active before keep what
    they have stored and answer with it until it has left the window.

    Parameters
    ----------
    cores : tuple of int
        The active cores, in the order of their turns.
    after : int
        Tuples of both sides that come before the epoch, at least. Rows that match nothing, such as
        those with a null in a compared column, may not count, as they are not sent.
    beyond : object, optional
        Only a tuple whose time is greater than this value of the left order column begins the
        epoch. The time of a tuple is the watermark of the stream, as tuples are sent in the order
        of time.
    number : int, optional
        Number of the epoch, above that of the epoch before it. A join begins with epoch 0, of all
        cores. The driver chooses the next number if none is given.
    """

    cores: tuple[int, ...]
    after: int = 0
    beyond: Any = None
    number: int | None = None


class EpochSchedule(Protocol):
    """What decides the epochs of a join, while it runs, such as a controller."""

    def next(self, staged: int) -> Epoch | None:
        """Return the epoch that comes next, or None if nothing is decided yet.

        The driver asks before it stages tuples, and again once the stream has passed the gamma of
        the last answer. It asks once for each number of staged tuples.

        Parameters
        ----------
        staged : int
            Tuples of both sides that have been staged.
        """


#: Epochs as they may be given: a schedule, or epochs in their order. A pair is the place and the
#: active cores of an epoch.
Epochs = EpochSchedule | Sequence[Epoch | tuple[int, Sequence[int]]]


class ListedEpochs:
    """A schedule whose epochs are known beforehand.

    Parameters
    ----------
    epochs : sequence of Epoch or (int, sequence of int)
        The epochs in order; of a pair, ``after`` and ``cores``.

    Attributes
    ----------
    epochs : tuple of Epoch
    """

    def __init__(self, epochs: Sequence[Epoch | tuple[int, Sequence[int]]]) -> None:
        self.epochs = tuple(
            given if isinstance(given, Epoch) else Epoch(tuple(given[1]), after=given[0])
            for given in epochs
        )
        self._rest: Iterator[Epoch] = iter(self.epochs)

    def next(self, staged: int) -> Epoch | None:
        """Return the next epoch; None after the last one."""
        return next(self._rest, None)
