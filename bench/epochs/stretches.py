# SPDX-License-Identifier: Apache-2.0
"""A stretch of a stream with an epoch every so many tuples: does its input ever wait for one?"""

from dataclasses import dataclass

import numpy as np

from host.devices.simulated import SimulatedDevice

from .joins import RandomStream, random_epochs
from .loads import WINDOWS

__all__ = ["WITHHELD", "Stretch", "measure_stretch", "stretches"]

#: Cycles out of 256 in which no word is offered, chosen at random. So a word comes in 4.6 cycles on
#: the average, which one active core can follow: the input waits for no work, and any wait that
#: epochs bring is seen.
WITHHELD = 200


@dataclass(frozen=True)
class Stretch:
    """A stretch that is simulated from reset on, and kept as a whole.

    Parameters
    ----------
    accelerator : str
        Name in :data:`bench.epochs.loads.ENGINES`.
    window : str
        Name in :data:`bench.epochs.loads.WINDOWS`.
    number : int
        Number of the stretch.
    tuples : int
        Tuples of both sides.
    distance : int
        Tuples from epoch to epoch.
    seed : int
        Seed of the run.
    """

    accelerator: str
    window: str
    number: int
    tuples: int
    distance: int
    seed: int


def stretches(kinds, *, tuples, length, distance, seed):
    """Return the stretches of a run, of all kinds in turn.

    Parameters
    ----------
    kinds : sequence of (str, str)
        Accelerators and windows.
    tuples, length, distance : int
        Tuples of the run at least, of a stretch, and from epoch to epoch.
    seed : int

    Raises
    ------
    ValueError
        If a stretch has no epoch, or the run no tuple.
    """
    if tuples < 1:
        raise ValueError(f"Option --tuples must be at least 1, not {tuples}")
    if not 1 <= distance < length:
        raise ValueError(
            f"Option --distance must be 1 to {length - 1}, or no stretch of {length} tuples has an "
            f"epoch, not {distance}"
        )
    count = -(-tuples // length)
    return [
        Stretch(*kinds[number % len(kinds)], number, length, distance, seed)
        for number in range(count)
    ]


def measure_stretch(manifest, stretch):
    """Simulate a stretch with its epochs, and without; return what was counted.

    Both runs have the same tuples, offered at random by the same seed. The hardware counts the
    cycles in which a word had to wait (``ingress_stalled``).

    Parameters
    ----------
    manifest : Manifest
        Of a bundle whose library is built.
    stretch : Stretch

    Returns
    -------
    dict
        JSON-compatible: ``pairs``, ``bad`` (pairs that are lost, repeated or wrong with epochs or
        without), ``epochs``, ``superseded``, and with and without epochs ``cycles`` and
        ``stalled``.
    """
    generator = np.random.default_rng([stretch.seed, stretch.number])
    stream = RandomStream(WINDOWS[stretch.window], tuples=stretch.tuples, generator=generator)
    places = range(stretch.distance, stretch.tuples, stretch.distance)
    given = random_epochs(generator, places, manifest.storage.cores, 1)
    found = {"bad": 0}
    for name, epochs in (("without", []), ("with", given)):
        with SimulatedDevice(manifest.path, seed=1 + stretch.number, stall_in=WITHHELD) as device:
            join = stream.join(device, epochs)
            counts = device.counters()
        compared = stream.compared(join)
        found["bad"] += compared.bad
        found |= {f"cycles_{name}": counts["cycles"], f"stalled_{name}": counts["ingress_stalled"]}
    return found | {
        "pairs": compared.pairs, "epochs": compared.epochs, "superseded": compared.superseded,
    }  # fmt: skip
