# SPDX-License-Identifier: Apache-2.0
"""Joins in which a random bit of a memory flips at some moment, judged by the reference join."""

from functools import cache

import numpy as np

from hdl.parameters import JoinParameters, KeyField
from host.devices.simulated import SimulatedDevice
from host.protocol.manifest import Manifest
from host.query.queries import Query
from host.reference.arrivals import Side

from .flips import flipping, memories_of
from .trials import judged, tables

__all__ = ["FLIP_SHAPES", "run_flip"]

#: Cycles within which a bit flips; the joins take about as many.
CYCLES = 1_000
#: Largest lifespan of a window, in the unit of the timestamps: a side has one tuple in each.
LIFESPAN = 20


def checked(**options):
    """Return parameters of a small accelerator whose memories have parity."""
    chosen = {"keys": (KeyField(name="x", bits=16),), "sub_window": 40, "timestamp_bits": 16}
    parameters = JoinParameters.of(**{**chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence, parity=True)


#: Accelerators of the trials: both engines, with and without digests, of both comparators.
FLIP_SHAPES = {
    "scan": checked(cores=4, probes=2, lanes=2),
    "digests": checked(cores=3, probes=3, lanes=3, comparator="equality", digest_bits=6),
    "band digests": checked(cores=3, probes=2, lanes=2, digest_bits=6, fan_in=2),
    "index": checked(cores=3, probes=4, engine="index", bucket_bits=5, tuples_per_word=2),
    "equality index": checked(
        cores=3, probes=2, engine="index", comparator="equality", bucket_bits=4
    ),
}


@cache
def stored_memories(bundle):
    """Return the memories of a bundle in which a bit can flip."""
    return memories_of((bundle / Manifest.load(bundle).files["verilog"]).read_text("utf-8"))


def run_flip(bundle, seed):
    """Run one join on a bundle of :func:`sim.failures.flips.write_flippable`; return a Trial."""
    rng = np.random.default_rng(seed)
    both = tuple(tables(rng))
    manifest = Manifest.load(bundle)
    storage = manifest.storage
    most = (storage.cores - 1) * storage.sub_window  # fits the cores that are left
    by_count = rng.random() < 0.5
    window = {"rows": int(rng.integers(1, most))} if by_count else {"within": LIFESPAN}
    policy = ["report", "replay"][int(rng.integers(2))]
    asked = {"band": {"x": (-1, 1)}} if manifest.bounded else {"on": "x"}
    query = Query(time="t", **asked, **window, on_failure=policy)
    memories = stored_memories(bundle)
    number = int(rng.integers(len(memories)))
    memory = memories[number]
    place = (int(rng.integers(memory.rows)), int(rng.integers(memory.bits)))
    moment = int(rng.integers(CYCLES))
    rates = {"stall_in": int(rng.integers(100)), "stall_out": int(rng.integers(100))}
    text = f"seed {seed}: {memory.path} {place} in cycle {moment}, {query}, {policy}"
    with (
        flipping(number, *place, moment),
        SimulatedDevice(bundle, seed=seed + 1, **rates) as device,
    ):
        return judged(both, query, device, memory.core, text, parity=(Side(memory.side),))
