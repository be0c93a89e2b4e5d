# SPDX-License-Identifier: Apache-2.0
"""Errors of epochs: of their numbers, of their cores, and of the room that these cores have."""

from collections.abc import Sequence

from host.errors.base import UsageError

__all__ = ["EpochCapacityError", "EpochCoresError", "EpochError", "EpochOrderError"]


class EpochError(UsageError):
    """An epoch is refused; the epoch before it stays in force.

    Parameters
    ----------
    number : int
        Number of the epoch that is refused.
    rule, remedy : str
        Which rule the epoch breaks, with the value, and what would help.
    place : int or None
        Tuples of both sides that were sent before the epoch was refused; None if it was refused
        before the join began.
    """

    def __init__(self, number: int, rule: str, remedy: str, place: int | None = None) -> None:
        self.number = number
        self.rule = rule
        self.remedy = remedy
        self.place = place
        where = "" if place is None else f" after {place} tuples"
        super().__init__(f"Epoch {number} is refused{where}: {rule}; {remedy}.")


class EpochOrderError(EpochError):
    """The number of an epoch is not above that of the epoch before it."""

    def __init__(self, number: int, last: int, place: int | None = None) -> None:
        self.last = last
        super().__init__(
            number,
            f"its number is not above {last}, that of the epoch before it",
            "number epochs upwards from 1, or leave the numbers to the driver",
            place,
        )


class EpochCoresError(EpochError):
    """An epoch has no core, a core that the accelerator does not have, or one core twice."""

    def __init__(
        self, number: int, cores: Sequence[int], most: int, place: int | None = None
    ) -> None:
        self.cores = tuple(cores)
        super().__init__(
            number,
            f"it needs at least one core, each of 0 to {most - 1} at most once, not {list(cores)}",
            "give it the numbers of the cores that are to be active",
            place,
        )


class EpochCapacityError(EpochError):
    """The active cores of an epoch cannot hold the window.

    Parameters
    ----------
    number : int
        Number of the epoch.
    window : int
        Tuples of one side in the window.
    cores : sequence of int
        The active cores.
    room : int
        Tuples that each core holds.
    needed : int
        Tuples that one of the cores would have to hold, which is more than an even share if the
        window has tuples of epochs before.
    place : int, optional
        See :class:`EpochError`.
    """

    def __init__(
        self,
        number: int,
        window: int,
        cores: Sequence[int],
        room: int,
        needed: int,
        place: int | None = None,
    ) -> None:
        self.window, self.room, self.needed = window, room, needed
        self.cores = tuple(cores)
        super().__init__(
            number,
            f"with a window of {window} tuples, one of its {len(cores)} cores would hold {needed} "
            f"tuples, and each has room for {room}",
            "keep more cores active, choose a smaller window, or build a bundle with a larger "
            "--sub-window",
            place,
        )
