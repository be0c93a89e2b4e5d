# SPDX-License-Identifier: Apache-2.0
"""How much of its memory's bandwidth a scan of external windows uses, at any latency."""

from contextlib import closing

from hdl.parameters import JoinParameters, KeyField
from host.devices.simulated import MemoryPace
from sim.benches.saturated_run import RARE, SaturatedRun

from .registry import Result, figure

__all__ = ["EXTERNAL", "bandwidth_used", "latencies"]

#: One core whose passes read 2,048 rows.
EXTERNAL = JoinParameters.of(
    cores=1, sub_window=8192, lanes=4, probes=16, probe_bits=4,
    keys=(KeyField(name="x", bits=16), KeyField(name="y", bits=16)),
    store="external", memory_width=128, memory_burst=16, memory_latency=64,
)  # fmt: skip
#: Groups of each side in a measurement.
GROUPS = 20
#: Latencies that are measured, with accelerators that were made to hide the ones before the colon.
LATENCIES = {64: (1, 16, 32, 64, 96, 128, 256), 256: (64, 128, 256)}


def bandwidth_used(parameters, latency, report, *, jitter=0):
    """Measure beats with full windows, and words as fast as they are accepted.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    latency, jitter : int
        Pace of its memories, in cycles.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    used : float
        Beats that are read per cycle and region, of which each is compared with all probes.
    useful : float
        Bytes of keys in a beat.
    counts : dict of str to int
        Counters of the hardware.
    """
    pace = MemoryPace(latency=latency, jitter=jitter)
    with closing(SaturatedRun(parameters, report, memory=pace)) as run:
        run.bound(RARE)
        _, counts = run.measure(2 * GROUPS * parameters.engine.probes)
        regions, useful = len(run.manifest.memory.ports), run.manifest.memory.key_bytes
    return counts["memory_reads"] / (regions * counts["cycles"]), useful, counts


def latencies(report):
    """Yield rows of a table: latency that is hidden, latency, beats per cycle, counters."""
    for hidden, measured in LATENCIES.items():
        for latency in measured:
            used, _, counts = bandwidth_used(EXTERNAL.with_(memory_latency=hidden), latency, report)
            yield hidden, latency, used, counts


@figure("external.efficiency_at_64_cycles_latency", unit="beats per cycle", goal=">= 0.9")
def efficiency_at_64_cycles_latency(report):
    """Beats read per cycle and memory port while windows of 2,048 rows are scanned.

    The memories answer after 64 cycles, with a beat per cycle. One pair in 250,000 matches. Words
    come as fast as they are accepted, and sides alternate. Every beat that is read is a row of
    keys, which all probes of the group are compared with. Rows that are on the chip when their pass
    begins are not read. Counted at the ports by the accelerator's own counters.
    """
    used, useful, counts = bandwidth_used(EXTERNAL, 64, report)
    size = EXTERNAL.engine.memory_width // 8
    waits = counts["memory_waits"] / (2 * counts["cycles"])
    note = (
        f"{useful:g} of {size} bytes of a beat are keys; passes wait for a row in {waits:.4f} of"
        f" all cycles, and rows are written in {counts['memory_writes'] / counts['cycles']:.4f}"
    )
    return Result(used, notes=(note,), details={"counters": counts})
