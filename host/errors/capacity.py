# SPDX-License-Identifier: Apache-2.0
"""Errors of queries that ask for more than the given accelerator can do."""

from host.errors.base import FailureError, UsageError
from host.installation import command
from host.presets import PRESETS

__all__ = ["AcceleratorLimitError", "CapacityError", "WindowOverflowError"]


class AcceleratorLimitError(UsageError):
    """The given accelerator cannot serve a valid query; another device, or none, can.

    Parameters
    ----------
    reason, remedy : str
        What the accelerator cannot do, and what would help.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}.")


class CapacityError(AcceleratorLimitError):
    """A window is larger than the accelerator can hold, which is known before any tuple is sent.

    Parameters
    ----------
    needed, capacity : int
        Number of tuples of one side: in the window, and in the accelerator.
    side : object, optional
        Side of the window.
    cores : int
        Number of cores in the suggested command.
    engine : str
        Engine in the suggested command.
    """

    def __init__(
        self,
        needed: int,
        capacity: int,
        *,
        side: object | None = None,
        cores: int = 4,
        engine: str = "scan",
    ) -> None:
        self.needed = needed
        self.capacity = capacity
        self.side = side
        of_side = "" if side is None else f" of side {_name(side)}"
        super().__init__(
            f"A window{of_side} of {needed} tuples is larger than the accelerator's capacity of "
            f"{capacity} tuples per side",
            f"a bundle that holds it: {_build_command(needed, cores, engine)}; where no device is "
            f"named, build=True (--build) makes one",
        )


class WindowOverflowError(FailureError):
    """A time-based window outgrew the cores while tuples arrived.

    Parameters
    ----------
    side : object
        Side of the window.
    capacity : int
        Number of tuples of one side that the accelerator holds.
    ordinal : int, optional
        Number, within its side, of the tuple that found no room; the first is 0.
    needed : int, optional
        Capacity that the whole input needs, if known.
    cores : int
        Number of cores in the suggested command.
    engine : str
        Engine in the suggested command.
    """

    def __init__(
        self,
        side: object,
        capacity: int,
        ordinal: int | None = None,
        *,
        needed: int | None = None,
        cores: int = 4,
        engine: str = "scan",
    ) -> None:
        self.side = side
        self.capacity = capacity
        self.ordinal = ordinal
        self.needed = needed
        place = "" if ordinal is None else f" with its tuple number {ordinal} (the first is 0)"
        least = 2 * capacity if needed is None else needed
        goal = "more" if needed is None else f"the {needed} tuples needed"
        super().__init__(
            f"The time-based window of side {_name(side)} outgrew the capacity of {capacity} "
            f"tuples{place}; shorten the window, or build a bundle that holds {goal}: "
            f"{_build_command(least, cores, engine)}."
        )


def _build_command(needed: int, cores: int, engine: str) -> str:
    """Return a command that builds a bundle for at least ``needed`` tuples per side."""
    sub_window = 1 << max(0, (-(-needed // cores) - 1).bit_length())
    words = f"--preset {PRESETS[engine]} --cores {cores} --sub-window {sub_window} --output DIR"
    return f"`{command(f'sim build {words}')}`"


def _name(side: object) -> str:
    return str(getattr(side, "name", side))
