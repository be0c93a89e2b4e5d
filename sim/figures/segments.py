# SPDX-License-Identifier: Apache-2.0
"""What a change of the cores that store costs: stalls of the input, and groups that end early."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from hdl.parameters import JoinParameters, KeyField
from host.errors import DeviceError

from .registry import Result, figure
from .saturated_run import RARE, SaturatedRun, tuples

__all__ = ["CHANGES", "Load", "costs"]

#: Changes in a run. They come as often as two of them are allowed within a window.
CHANGES = 40
FIELDS = tuple(KeyField(name=name, bits=16, signed=False) for name in "xy")
SCAN = JoinParameters(cores=4, sub_window=64, lanes=2, probes=4, keys=FIELDS, probe_bits=2)
INDEX = JoinParameters(
    engine="index", cores=4, sub_window=256, probes=4, keys=FIELDS, probe_bits=2, bucket_bits=8
)


@dataclass(frozen=True)
class Load:
    """A saturated accelerator, its precision, and the order in which cores take turns.

    Parameters
    ----------
    parameters : JoinParameters
    period : int
        Probes per star.
    rotates : bool
        Whether every segment begins with another core. Otherwise cores keep their order, and a
        segment begins with the core whose turn it is, so that each core does the same work.
    """

    parameters: JoinParameters
    period: int
    rotates: bool = False

    @property
    def distance(self):
        """Return the number of tuples of both sides from change to change."""
        return self.parameters.capacity

    def lists(self):
        """Yield the cores of each segment."""
        cores = self.parameters.cores
        for number in range(CHANGES):
            first = number % cores if self.rotates else 0
            yield [(first + n) % cores for n in range(cores)]


#: Loads in which no group is open at a change, since every probe is a group of its own.
STRICT = {
    "scan, strict outer order": Load(SCAN, 1),
    "index, strict outer order": Load(INDEX, 1),
    "index, strict outer order, other cores first": Load(INDEX, 1, rotates=True),
}
#: Loads with full groups, which a change may find open.
GROUPED = {"scan, groups of 4": Load(SCAN, 4), "index, groups of 4": Load(INDEX, 4)}


def counted(load, report, *, changes):
    """Return the counters of a run: full windows, and tuples as fast as they are accepted.

    Words stand at the same places in both kinds of runs. With ``changes`` they are CORE words and
    SEGMENT; otherwise as many BOUND_LOW words, which repeat the bound that holds.
    """
    with closing(SaturatedRun(load.parameters, report, period=load.period)) as run:
        run.bound(RARE)
        control = run.codec.pack_control
        words, places = [], []
        for number, live in enumerate(load.lists()):
            turns = [control("CORE", value=core) for core in live] + [control("SEGMENT")]
            others = [control("BOUND_LOW", 0, -RARE)] * len(turns)
            words += turns if changes else others
            places += [(number + 1) * load.distance] * len(turns)
        every = run.tuples((CHANGES + 1) * load.distance)
        before = run.device.counters()
        run.send(np.insert(every, places, np.concatenate(words), axis=0))
        after = run.device.counters()
    counts = {name: after[name] - before[name] for name in after}
    if counts["illegal"] or tuples(counts) != len(every):
        raise DeviceError(f"The accelerator dropped words of a run that measures turns: {counts}")
    return counts


def costs(loads, counter, report):
    """Return, for each load, by how much a counter is greater with changes, per change."""
    found = {}
    for name, load in loads.items():
        plain, changed = (counted(load, report, changes=changes) for changes in (False, True))
        found[name] = (changed[counter] - plain[counter]) / CHANGES
        report(f"figures: {name}: {counter} {plain[counter]} without, {changed[counter]} with")
    return found


def told(found):
    """Return the notes of a figure."""
    return tuple(f"{name}: {value:+.3f} for each change" for name, value in found.items())


@figure("segments.stall_cycles", unit="cycles", goal="<= 0")
def stall_cycles(report):
    """Cycles in which the input has to wait because turns change, for each change; the worst load.

    Two runs are compared by the counter ``ingress_stalled``: of the same accelerator, with full
    windows and the same tuples, as fast as it takes them. One has CORE words and a SEGMENT word at
    40 places, the other one as many words at the same places that change nothing. The order is
    strict, so no group is open, and both runs compare the same keys in the same groups.
    """
    found = costs(STRICT, "ingress_stalled", report)
    return Result(max(found.values()), notes=told(found), details={"loads": found})


@figure("segments.group_cycles", unit="cycles", goal=None)
def group_cycles(report):
    """Cycles that a change costs because SEGMENT ends open groups; the worst load.

    As ``segments.stall_cycles``, but with full groups, and by the counter ``cycles``. A group that
    ends early takes a pass of its own, in which fewer probes share the work.
    """
    found = costs(GROUPED, "cycles", report)
    return Result(max(found.values()), notes=told(found), details={"loads": found})
