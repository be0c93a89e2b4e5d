# SPDX-License-Identifier: Apache-2.0
"""What a change of the cores that store costs: by the change itself, and by groups that it ends."""

from contextlib import closing
from dataclasses import dataclass
from functools import cache

import numpy as np

from hdl.parameters import JoinParameters, KeyField
from host.errors import DeviceError
from sim.benches.saturated_run import RARE, SaturatedRun, tuples

from .registry import Result, figure

__all__ = ["CHANGES", "Load", "counted", "cycles_more"]

#: Changes in a run.
CHANGES = 40
FIELDS = tuple(KeyField(name=name, bits=16, signed=False) for name in "xy")
SCAN = JoinParameters.of(cores=4, sub_window=64, lanes=2, probes=8, keys=FIELDS, probe_bits=3)
INDEX = JoinParameters.of(
    engine="index", cores=4, sub_window=256, probes=8, keys=FIELDS, probe_bits=3, bucket_bits=8
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
        """Return the number of tuples of both sides from change to change.

        Turns of all cores come round, a full group does not, and no window holds tuples of more
        than three segments.
        """
        return self.parameters.capacity + 2 * self.parameters.cores

    def cores(self, number):
        """Return the cores of a segment."""
        first = number if self.rotates else 0
        return [(first + n) % self.parameters.cores for n in range(self.parameters.cores)]


#: Loads whose regions store the same tuples with changes and without.
LOADS = {
    "scan, strict outer order": Load(SCAN, 1),
    "scan, groups of 8": Load(SCAN, 8),
    "index, strict outer order": Load(INDEX, 1),
    "index, groups of 8": Load(INDEX, 8),
}
#: A load with changes after which cores have up to one tuple more than others.
ROTATED = {"index, groups of 8, other cores first": Load(INDEX, 8, rotates=True)}


def change_words(codec, load, number, kind):
    """Return the control words of one change: of ``kind`` "turns", "closing" or "nothing".

    There are as many words of each kind: CORE words and SEGMENT; BOUND_LOW words, which repeat the
    bound in force, and FLUSH; BOUND_LOW words alone.
    """
    live, bound = load.cores(number), codec.pack_control("BOUND_LOW", 0, -RARE)
    if kind == "turns":
        cores = [codec.pack_control("CORE", value=core) for core in live]
        return [*cores, codec.pack_control("SEGMENT")]
    last = codec.pack_control("FLUSH") if kind == "closing" else bound
    return [*[bound] * len(live), last]


@cache
def counted(load, kind, report):
    """Return the counters of a run: full windows, and words as fast as they are accepted."""
    with closing(SaturatedRun(load.parameters, report, period=load.period)) as run:
        run.bound(RARE)
        changes = [change_words(run.codec, load, number, kind) for number in range(CHANGES)]
        places = np.repeat((np.arange(CHANGES) + 1) * load.distance, len(changes[0]))
        every = run.tuples((CHANGES + 1) * load.distance)
        words = np.insert(
            every, places, np.concatenate([word for change in changes for word in change]), axis=0
        )
        before = run.device.counters()
        run.send(words, marks=1 + (CHANGES if kind == "closing" else 0))
        after = run.device.counters()
    counts = {name: after[name] - before[name] for name in after}
    if counts["illegal"] or tuples(counts) != len(every):
        raise DeviceError(f"The accelerator dropped words of a run that measures turns: {counts}")
    return counts


def cycles_more(loads, kind, report):
    """Return, for each load, how many cycles a change of turns takes more than other words."""
    found = {}
    for name, load in loads.items():
        without, changed = (counted(load, one, report)["cycles"] for one in (kind, "turns"))
        found[name] = (changed - without) / CHANGES
        report(f"figures: {name}: {without} cycles with words of kind {kind}, {changed} with turns")
    return found


def told(found):
    """Return the notes of a figure."""
    return tuple(f"{name}: {value:+.3f}" for name, value in found.items())


@figure("segments.stall_cycles", unit="cycles", goal="<= 0")
def stall_cycles(report):
    """Cycles that a change of turns takes more than a word that only closes groups; the worst load.

    Two saturated runs are compared by the counter ``cycles``, from the first word to the last mark.
    Both have the same tuples and as many control words, at the same 40 places. One has CORE words
    and SEGMENT there, the other one has bounds that repeat those in force, and FLUSH. The cores
    keep their order, so that in both runs each region stores the same tuples.

    The value is in whole cycles for each change; the notes have the fractions. BOUND_LOW goes
    through the trees, CORE does not, and FLUSH emits a mark. So now and then, an index is a cycle
    ahead in one of the runs.

    The last note is of cores in another order for every segment. Then cores differ by a tuple for a
    while, which is work and no stall, and is not judged.
    """
    found = cycles_more(LOADS, "closing", report)
    rotated = cycles_more(ROTATED, "closing", report)
    worst = round(max(found.values()))
    return Result(worst, notes=told(found | rotated), details={"loads": found | rotated})


@figure("segments.closing_cycles", unit="cycles", goal=None)
def closing_cycles(report):
    """Cycles that a change of turns costs because SEGMENT closes the open groups; the worst load.

    As ``segments.stall_cycles``, but beside as many words that close no group. A group that ends
    early takes a pass of its own, in which fewer probes share the work; and so does the closing
    word itself, as FLUSH does. A change comes in the middle of a group of each side.
    """
    found = cycles_more(LOADS, "nothing", report)
    return Result(max(found.values()), notes=told(found), details={"loads": found})
