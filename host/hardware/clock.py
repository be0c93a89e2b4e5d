# SPDX-License-Identifier: Apache-2.0
"""Convert the cycles of a simulated device into time in hardware."""

from host.manifest import Manifest

__all__ = ["hardware_time"]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def hardware_time(cycles: int, manifest: Manifest) -> str | None:
    """Describe how long a number of cycles takes in hardware; None if that is not known.

    Parameters
    ----------
    cycles : int
        Clock cycles that the devices ran, added up; zero for a device without a clock.
    manifest : Manifest
        Manifest of the devices. It has no clock if neither they nor a twin was ever routed.
    """
    clock = manifest.clock
    if not cycles or clock is None:
        return None
    text = (
        f"{cycles:,} cycles: {_with_unit(cycles / (clock.mhz * 1e6))} at {clock.mhz:,.1f} MHz, the "
        f"routed clock of {'its twin ' if clock.twin else ''}`{clock.preset}` on an "
        f"{clock.device} of grade {clock.speed}"
    )
    if clock.capacity < manifest.capacity:
        text += f", which holds windows of up to {clock.capacity:,} tuples a side"
    if clock.earlier_design is not None:
        text += f"; its routing report is of an earlier design ({clock.earlier_design})"
    return text


def _with_unit(seconds: float) -> str:
    """Return a time as text, in the largest unit that does not make it less than one."""
    size, unit = next((each for each in _UNITS if seconds >= 0.95 * each[0]), _UNITS[-1])
    return f"{seconds / size:,.1f} {unit}"
