# SPDX-License-Identifier: Apache-2.0
"""Which cores are masked: MASK and UNMASK, by ``docs/architecture.md``, section 2.

Moments are as in :mod:`sim.soak.model`.
"""

import numpy as np

from .words import WordLayout, as_numbers

__all__ = ["Masks", "is_lawful"]


class Masks:
    """The masked cores of a program.

    A program gives new windows after UNMASK, so no window holds tuples that a core has forgotten.

    Parameters
    ----------
    cores : int
    changes : list of (int, int, bool)
        Moment, core, and whether the core is masked from then on, in the order of their moments. A
        core that does not exist is none.
    mute : int, optional
        A core that is masked all the time.
    """

    def __init__(self, cores, changes, mute=None):
        self.begins, self.rows = [-1], [np.arange(cores) == mute]
        for moment, core, masked in changes:
            if 0 <= core < cores and core != mute:
                row = self.rows[-1].copy()
                row[core] = masked
                self.begins.append(moment)
                self.rows.append(row)
        self.rows = np.stack(self.rows)

    def of(self, moments, cores):
        """Tell of each core whether it is masked at the moment beside it."""
        return self.rows[np.searchsorted(self.begins, moments) - 1, cores]

    def changes(self, core):
        """Return the moments of the words that mask a core, or let it take part again."""
        changes = np.diff(self.rows[:, core].astype(np.int8)) != 0
        return np.array(self.begins[1:], np.int64)[changes]


def is_lawful(manifest, words):
    """Tell whether a configuration follows each UNMASK of a core before the next tuple.

    It gives windows of both sides, all bounds, the parts of all fields, first of width 0, and all
    cells. What a core answers without them is not fixed.
    """
    operations, kinds = manifest["operations"], manifest["input_kinds"]
    if "UNMASK" not in operations:
        return True
    layout = WordLayout(manifest["input_word"])
    kind = layout.get(words, "kind")
    is_tuple = np.isin(kind, [kinds[name] for name in ("R", "S", "BOTH") if name in kinds])
    tuples_before = np.cumsum(is_tuple)
    controls = np.flatnonzero(kind == kinds["CONTROL"])
    names = {code: name for name, code in operations.items()}
    fields = len(manifest["parameters"]["keys"])
    every = {("window", side) for side in (0, 1)}
    for name in {"BOUND_LOW", "BOUND_HIGH", "COORDINATE"} & operations.keys():
        every |= {(name, field) for field in range(fields)}
    if "CELL" in operations:
        every |= {("CELL", part) for part in range(manifest["indices"]["CELL"])}
    missing, since = set(), 0
    for number, before in zip(
        as_numbers(words[controls]), tuples_before[controls].tolist(), strict=True
    ):
        if missing and before > since:
            return False
        op = names.get(layout.value(number, "control.op"))
        index = layout.value(number, "control.index")
        if op == "UNMASK":
            core = layout.value(number, "control.value")
            if 0 <= core < manifest["storage"]["cores"]:
                missing, since = set(every), before
        if op != "COORDINATE" or layout.value(number, "control.value") == 0:
            missing.discard(("window" if op in ("WINDOW", "LIFESPAN") else op, index))
    return not missing or int(is_tuple.sum()) == since
