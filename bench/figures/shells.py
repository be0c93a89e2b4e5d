# SPDX-License-Identifier: Apache-2.0
"""What a shell costs in cycles, measured at the pins of the generated Verilog."""

from functools import cache

from hdl.presets import PRESETS
from hdl.shells.axi import AxiOptions
from sim.benches.axi_runner import run_axi_bench

from .registry import Result, figure

__all__ = []

PRESET = "tiny"


@cache
def measured(inputs=1):
    """Return what the bench of the AXI shell has measured, after all its scenarios have passed."""
    options, name = AxiOptions(inputs=inputs), f"axi figures of {inputs} inputs"
    return run_axi_bench(PRESETS[PRESET], name=name, options=options)


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


@figure("shell.axi.two_inputs.words_per_cycle", unit="tuples per cycle", goal=">= 0.99")
def merged_words_per_cycle(report):
    """Tuples per cycle into the AXI shell with two inputs, of both together, without pauses.

    256 tuples whose sides alternate, which the accelerator drops; the first three quarters are left
    out, while the queues of the merge fill. Counted at ``s_axis_r`` and ``s_axis_s`` under
    Verilator.
    """
    found = measured(2)
    added = f"{found['before']} cycles in front of the accelerator, {found['behind']} behind"
    return Result(found["in"], notes=(f"preset {PRESET}: {added}",))
