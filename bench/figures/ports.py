# SPDX-License-Identifier: Apache-2.0
"""What two result ports are worth where results saturate one."""

from contextlib import closing

from hdl.parameters import JoinParameters, KeyField
from sim.benches.saturated_run import SaturatedRun, tuples

from .registry import Result, figure

__all__ = ["LOADS", "saturated"]

FIELD = (KeyField(name="x", bits=16, signed=False),)
#: Values of the field: a tuple meets a sixteenth of a window of 256 tuples.
VALUES = 16
#: Tuples of a measurement.
TUPLES = 4_000
SCAN = JoinParameters.of(
    cores=4, sub_window=64, lanes=4, probes=8, keys=FIELD, probe_bits=3, comparator="equality"
)
INDEX = JoinParameters.of(
    engine="index", cores=4, sub_window=64, probes=8, keys=FIELD, probe_bits=3,
    comparator="equality",
)  # fmt: skip
#: Accelerators, and probes per star.
LOADS = {
    "scan, groups of 8": (SCAN, 8),
    "scan, strict outer order": (SCAN, 1),
    "index, groups of 8": (INDEX, 8),
    "index, two results in a word": (INDEX.with_(tuples_per_word=2), 8),
}


def saturated(parameters, period, report):
    """Return the counters of a run with full windows, and words as fast as they are accepted."""
    with closing(SaturatedRun(parameters, report, values=VALUES, period=period)) as run:
        run.bound(0)
        return run.measure(TUPLES)[1]


@figure("order.two_ports", unit="times", goal=">= 1.9")
def two_ports(report):
    """Throughput with two result ports over that with one, where results saturate one.

    Both accelerators are the same but for their ``result_streams``. Sides alternate, and a tuple
    meets 16 of 256 tuples of the window. So one port, which takes a word in nearly every cycle, is
    what limits the first of them. Tuples per cycle, by the counters of the hardware. The value is
    that of a scan in full groups; the notes have the other loads, and how busy the ports are.
    """
    ratios, notes = {}, []
    for name, (parameters, period) in LOADS.items():
        counts = [
            saturated(parameters.with_(result_streams=ports), period, report) for ports in (1, 2)
        ]
        rates = [tuples(some) / some["cycles"] for some in counts]
        busy = [some["output_busy"] / some["cycles"] for some in counts]
        ratios[name] = rates[1] / rates[0]
        notes.append(
            f"{name}: {rates[0]:.4f} and {rates[1]:.4f} tuples per cycle, {ratios[name]:.3f} times;"
            f" {busy[0]:.3f} and {busy[1]:.3f} words per cycle"
        )
    return Result(ratios["scan, groups of 8"], notes=tuple(notes), details={"loads": ratios})
