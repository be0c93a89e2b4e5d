# SPDX-License-Identifier: Apache-2.0
"""Figures of the routed scans that fill a device: pairs per second by digests and by whole keys.

Cycles are counted in simulation, at the clock of a routing report. Beside each figure stand the
same for groups of one, which is the strict outer order, and the share of it that a twin with 48-bit
timestamps reaches.
"""

from functools import partial

from hdl.presets import PRESETS

from .registry import Result, figure
from .routed import rate

__all__ = ["SCANS"]

#: What is counted, with its goal and the preset that does it. Whole keys have another name than
#: digests, because a comparator of digests compares some bits of two keys only.
SCANS = {
    "pairs_decided_per_s_equality": (">= 3e11", "ecp5-equality-wide"),
    "pairs_decided_per_s_band": (">= 2e11", "ecp5-band-digest"),
    "whole_key_per_s_equality": (">= 1e11", "ecp5-equality-whole"),
    "whole_key_per_s_band": (">= 6.2e10", "ecp5-band"),
}


def scan_rate(preset, groups, report):
    """Return the pairs per second that a routed preset decides, or compares by whole keys."""
    return rate(preset, PRESETS[preset].engine.rate, groups, report)


def timed_over_plain(preset, report):
    """Return the rate of a preset's twin with timestamps over that of the preset."""
    plain = scan_rate(preset, "full", report)
    timed = scan_rate(f"{preset}-timed", "full", report)
    return Result(
        timed.value / plain.value,
        notes=tuple(f"{name}: {note}" for name, result in
                    (("plain", plain), ("timed", timed)) for note in result.notes),
        details={"plain": plain.details, "timed": timed.details},
    )  # fmt: skip


for name, (goal, preset) in SCANS.items():
    unit = "comparisons/s" if "whole_key" in name else "pairs/s"
    row = f"scan.routed_{name}"
    figure(row, unit=unit, goal=goal)(partial(scan_rate, preset, "full"))
    figure(f"{row}_groups_of_one", unit=unit, goal=None)(partial(scan_rate, preset, "single"))
    figure(f"scan.routed_timed_over_plain_{name}", unit="", goal=">= 0.9")(
        partial(timed_over_plain, preset)
    )
