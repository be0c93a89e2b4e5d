# SPDX-License-Identifier: Apache-2.0
"""What a shell costs in cycles, measured at the pins of the generated Verilog."""

from functools import cache

from hdl.presets import PRESETS
from sim.benches.axi_runner import run_axi_bench

from .registry import Result, figure

__all__ = []

PRESET = "tiny"


@cache
def measured():
    """Return what the bench of the AXI shell has measured, after all its scenarios have passed."""
    return run_axi_bench(PRESETS[PRESET], name="axi figures")


@figure("shell.axi.words_per_cycle", unit="words per cycle", goal=">= 1")
def words_per_cycle(report):
    """Words per cycle into and out of the AXI shell without pauses; the lesser of the two.

    In: 256 words that the accelerator drops, for it takes no others in every cycle. Out: 256 words
    of an accelerator whose results wait for the port. Counted at ``s_axis`` and ``m_axis`` under
    Verilator.
    """
    found = measured()
    note = f"preset {PRESET}: {found['in']:.4f} words per cycle in, {found['out']:.4f} out"
    return Result(min(found["in"], found["out"]), notes=(note,))


@figure("shell.axi.added_latency_cycles", unit="cycles", goal="<= 6")
def added_latency_cycles(report):
    """Cycles that the AXI shell adds, from a FLUSH at its pins to the mark at its pins.

    The ports of the accelerator inside are observed as well; what it takes itself does not count.
    """
    found = measured()
    note = (
        f"preset {PRESET}: {found['before']} in front of the accelerator, {found['behind']} behind"
    )
    return Result(found["before"] + found["behind"], notes=(note,))
