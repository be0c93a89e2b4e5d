# SPDX-License-Identifier: Apache-2.0
"""The lockstep of a simulator library with one that was made of the shipped Verilog."""

from dataclasses import dataclass
import json
from random import Random

import numpy as np

from host.devices.contract import Stamps
from host.devices.simulated import LIBRARY, Simulation
from host.errors import BuildError
from host.files.atomic import publish

__all__ = ["Conversation", "compare_in_lockstep", "converse", "random_words"]

#: Cycles that two libraries are compared for, in several runs, and the stalls of each, of 256
#: cycles: those in which no word is offered, and those in which no result is taken.
CYCLES, STALLS = 12_000, ((0, 0), (60, 120), (200, 30))
#: Tuples before the first other word, for an operation may leave windows empty for good; likewise
#: the words from one to the next, and a quarter of those from one without a meaning to the next.
CALM = 100
#: Values that a field takes: few, so that tuples match.
FEW = 16


@dataclass(frozen=True)
class Conversation:
    """What a simulation has shown of itself, cycle by cycle.

    Parameters
    ----------
    results : ndarray
        Result words.
    produced, accepted : ndarray
        Cycles in which they, and the input words, were taken.
    counters : dict of str to int
    """

    results: np.ndarray
    produced: np.ndarray
    accepted: np.ndarray
    counters: dict[str, int]

    def difference(self, other):
        """Return what differs first in another conversation, a text; empty if nothing does."""
        for name in ("accepted", "produced", "results"):
            mine, theirs = getattr(self, name), getattr(other, name)
            same = min(len(mine), len(theirs))
            places = np.flatnonzero((mine[:same] != theirs[:same]).reshape(same, -1).any(axis=1))
            if len(places) or len(mine) != len(theirs):
                place = int(places[0]) if len(places) else same
                return f"{name} {place}: {mine[place:][:1]} and {theirs[place:][:1]}"
        changed = [name for name, count in self.counters.items() if other.counters[name] != count]
        return f"counters {json.dumps(changed)}" if changed else ""


def fields_of(manifest, kind):
    """Return the fields of an input word of a kind, by their names.

    Those of some kinds begin with its name; others have those that begin with no such name.
    """
    fields, kinds = manifest.input_word.fields, {name.lower() for name in manifest.input_kinds}
    parts = {name: name.partition(".")[0] for name in fields}
    named = {part for part in parts.values() if part in kinds}
    own = named & {kind.lower()}
    return {
        name: field
        for name, field in fields.items()
        if parts[name] in own or (parts[name] not in named and (name == "kind" or not own))
    }


def random_words(manifest, random, count):
    """Return a random program: tuples that match, in order of time, and other words now and then.

    Parameters
    ----------
    manifest : BundleManifest
        Of an accelerator of any kind: what words mean is not asked, only which fields they have.
    random : random.Random
    count : int

    Returns
    -------
    ndarray
        Of shape ``(count, columns)``.
    """
    kinds, operations = manifest.input_kinds, manifest.operations
    tuples = [kind for kind in kinds if kind != "CONTROL"]
    fields = {kind: fields_of(manifest, kind) for kind in kinds}
    time = 0

    def word(kind, **given):
        number = 0
        given |= {"kind": kinds[kind]}
        for name, field in fields[kind].items():
            value = given.get(name.rpartition(".")[2])
            if value is None:
                value = random.randrange(-1 if field.signed else 0, FEW)
            number |= (value & ((1 << field.bits) - 1)) << field.offset
        return number

    # Without bounds, all keys would match.
    numbers = [
        word("CONTROL", op=operations[bound], index=index, value=0)
        for bound in ("BOUND_LOW", "BOUND_HIGH")
        for index in range(manifest.values.get("indices", {}).get(bound, 0))
    ]
    for n in range(count - len(numbers)):
        time += random.random() < 0.5
        drawn = random.random() if n > CALM else 1
        if drawn < 1 / CALM:
            numbers.append(word("CONTROL", op=random.choice(sorted(operations.values()))))
        elif drawn < 1.25 / CALM:
            numbers.append(random.getrandbits(manifest.input_word.bits))
        else:
            numbers.append(word(random.choice(tuples), timestamp=time))
    size = 8 * manifest.input_word.columns
    data = b"".join(number.to_bytes(size, "little") for number in numbers)
    return np.frombuffer(data, "<u8").reshape(len(numbers), -1)


def converse(folder, manifest, words, *, cycles, stall_in=0, stall_out=0):
    """Return the :class:`Conversation` of a new simulation that gets the words.

    Memories begin with zeros: what they hold otherwise is drawn in another order by each library,
    and may cost an index cycles.

    Parameters
    ----------
    folder : Path
        Where the library is.
    manifest : BundleManifest
    words : ndarray
    cycles, stall_in, stall_out : int
        Cycles that the conversation takes, and its stalls
        (:class:`~host.devices.simulated.Simulation`).
    """
    simulation = Simulation(folder, manifest, seed=0, stall_in=stall_in, stall_out=stall_out)
    room = np.zeros((cycles, manifest.result_word.columns), np.uint64)
    stamps = Stamps.for_arrays(words, room)
    results, produced, accepted, sent = [], [], [], 0
    try:
        while (left := cycles - simulation.cycle) > 0:  # a call ends with each mark
            done = simulation.exchange(words[sent:], room, cycles=left, stamps=stamps)
            results.append(room[: done.produced].copy())
            produced.append(stamps.produced[: done.produced].copy())
            accepted.append(stamps.accepted[: done.accepted].copy())
            sent += done.accepted
        return Conversation(
            np.concatenate(results),
            np.concatenate(produced),
            np.concatenate(accepted),
            simulation.counters(),
        )
    finally:
        simulation.close()


def compare_in_lockstep(library, plain, manifest, *, what, cycles=CYCLES):
    """Raise :exc:`BuildError` unless two libraries do the same in each of many random cycles.

    Parameters
    ----------
    library, plain : Path
        Shared objects: the one to be used, and that of the shipped Verilog.
    manifest : BundleManifest
        Of the bundle that both are made from.
    what : str
        Name of the build.
    cycles : int
        How many of them.

    Returns
    -------
    list of Conversation
        Those of the first library.
    """
    folders = [path.with_suffix(".compared") for path in (library, plain)]
    for folder, path in zip(folders, (library, plain), strict=True):
        folder.mkdir()
        publish(path, folder / LIBRARY)
    held = []
    for seed, (stall_in, stall_out) in enumerate(STALLS):
        each = cycles // len(STALLS)
        words = random_words(manifest, Random(seed), each)
        pace = {"cycles": each, "stall_in": stall_in, "stall_out": stall_out}
        mine, theirs = (converse(folder, manifest, words, **pace) for folder in folders)
        if difference := mine.difference(theirs):
            raise BuildError(
                what,
                "what is compiled is not what is shipped: run side by side with seed "
                f"{seed}, they differ in {difference}; report it, and build with --plain",
            )
        held.append(mine)
    return held
