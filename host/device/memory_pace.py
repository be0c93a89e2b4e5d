# SPDX-License-Identifier: Apache-2.0
"""How long the external memories of a simulated accelerator take, and whether they fail."""

from dataclasses import dataclass

__all__ = ["MemoryPace"]


@dataclass(frozen=True, kw_only=True)
class MemoryPace:
    """Latency, pauses and errors of every external memory of a simulation.

    Parameters
    ----------
    latency : int
        Cycles from a request to its first beat, or from the last beat of a write to its response;
        at least one.
    jitter : int
        Cycles that are added at random, at the most.
    stalls : int
        Number of cycles out of 256 in which a channel pauses, at random.
    faults : int
        Number of bursts out of 65,536 that are answered with an error, at random.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    latency: int
    jitter: int = 0
    stalls: int = 0
    faults: int = 0

    def __post_init__(self) -> None:
        ranges = {
            "latency": (1, 1 << 32), "jitter": (0, 1 << 32), "stalls": (0, 255),
            "faults": (0, 1 << 16),
        }  # fmt: skip
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"Parameter {name!r} must be {least} to {most}, not {value!r}")
