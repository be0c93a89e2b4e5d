# SPDX-License-Identifier: Apache-2.0
"""Joins in which a random core fails at a random moment, judged by the reference join."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hdl.parameters import JoinParameters, KeyField
from host.devices.simulated import SimulatedDevice
from host.devices.waiting import Deadline
from host.operators.verification import reference_pairs
from host.query.cores import ThresholdController
from host.query.queries import OnFailure, Query
from host.session.join import Join

from .expectation import arrivals, without_lost
from .injection import CoreFault, failing

__all__ = ["SHAPES", "Trial", "judged", "run_trial", "tables"]

ROWS = 250
#: Cycles in which a core fails, at the most; the joins take about as many.
CYCLES = 2_000


def gated(**options):
    """Return parameters of a small accelerator whose cores have gates."""
    chosen = {"keys": (KeyField(name="x", bits=16),), "sub_window": 40, "timestamp_bits": 16}
    parameters = JoinParameters.of(**{**chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence)


#: Accelerators of the trials, with cores of both numbers of regions that are powers of two, or not.
SHAPES = {
    "scan": gated(cores=4, probes=2, lanes=2),
    "scan, arity 2": gated(cores=3, fan_in=2, fan_out=2, probes=3),
}


@dataclass(frozen=True)
class Trial:
    """Outcome of one join with an injected fault.

    Parameters
    ----------
    right : bool
        Whether the answer was the reference join without exactly what the record lists.
    failed : bool
        Whether the failure was noticed; it may come when all is answered.
    missing : int
        Number of pairs that are missing.
    text : str
        How the trial can be repeated.
    """

    right: bool
    failed: bool
    missing: int
    text: str


def tables(rng):
    """Return two tables that are sorted by time."""
    return [
        pa.table(
            {
                "t": pa.array(np.cumsum(rng.integers(0, 3, ROWS))),
                "x": pa.array(rng.integers(0, 12, ROWS)),
            }
        )
        for _ in range(2)
    ]


def run_trial(bundle, seed):
    """Run one join on a bundle of :func:`sim.failures.injection.write_faulty`; return a Trial.

    In half of the joins, a controller changes the cores that store.
    """
    rng = np.random.default_rng(seed)
    left, right = tables(rng)
    window = {"rows": int(rng.integers(1, 70))} if rng.random() < 0.5 else {"within": 20}
    policy = ["report", "replay"][int(rng.integers(2))]
    fault = list(CoreFault)[int(rng.integers(len(CoreFault)))]
    moment = int(rng.integers(CYCLES))
    rates = {"stall_in": int(rng.integers(100)), "stall_out": int(rng.integers(100))}
    with SimulatedDevice(bundle) as device:
        cores = device.manifest.storage.cores
    core = int(rng.integers(cores))
    interval, is_elastic = int(rng.integers(50, 300)), rng.random() < 0.5
    query = Query(
        band=[("x", "x", -1, 1)], time="t", **window, on_failure=policy,
        elastic=ThresholdController(interval=interval) if is_elastic else None,
    )  # fmt: skip
    text = f"seed {seed}: core {core}, {fault.name} from cycle {moment} on, {query}, {policy}"
    with failing(core, fault, moment), SimulatedDevice(bundle, seed=seed + 1, **rates) as device:
        return judged((left, right), query, device, core, text)


def judged(both, query, device, core, text, parity=()):
    """Run one join of two tables on a device of which a core may fail; return a Trial.

    Parameters
    ----------
    both : tuple of Table
        The left and the right table.
    query : Query
        With the policy ``report`` or ``replay``.
    device : Device
        The device.
    core : int
        The core that may fail.
    text : str
        How the trial can be repeated.
    parity : tuple of Side
        Sides of whose tuples the core may read a flipped bit.
    """
    left, right = both
    pairs = [column.tolist() for column in reference_pairs(left, right, query)]
    expected = list(zip(*pairs, strict=True))
    cores = device.manifest.storage.cores
    deadline = Deadline(
        cycles=20 * int(device.manifest.parameters["engine"]["gates"]["failure_cycles"])
    )
    # Few rows at a time, so that a controller has decided before the last ones are staged.
    few = {} if query.elastic is None else {"batch_rows": 16, "buffer_rows": 32}
    join = Join(left, right, query, device, record=True, deadline=deadline, **few)
    join.run()
    found = list(zip(*(column.tolist() for column in join.measured.pairs), strict=True))
    record = join.measured.failures
    wanted, missing = without_lost(expected, record, arrivals(left, right))
    lost = [
        number
        for failure in record.failures
        for part in failure.lost
        for number in np.linspace(part.first, part.last, part.count).astype(int)
    ]
    # Where a controller changes turns, only the pairs themselves tell whose tuples were lost.
    right_place = query.elastic is not None or all(number % cores == core for number in lost)
    right_core = all(
        failure.core == core and failure.parity == parity for failure in record.failures
    )
    complete = query.on_failure is OnFailure.REPORT or not missing
    return Trial(
        found == wanted and right_place and right_core and complete,
        bool(record.failures),
        len(missing),
        text,
    )
