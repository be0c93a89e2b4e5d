# SPDX-License-Identifier: Apache-2.0
"""The tuples of a program."""

import numpy as np

__all__ = ["Tuples"]


class Tuples:
    """The tuples of a program in their order: ``moment``, ``side``, ``keys``, ``time``."""

    def __init__(self, layout, manifest, words):
        names = [f"key.{key['name']}" for key in manifest["parameters"]["keys"]]
        kinds = manifest["input_kinds"]
        kind = layout.get(words, "kind")
        parts = [self.part(layout, words, np.flatnonzero(kind == kinds[name]), side, "", names)
                 for side, name in enumerate("RS")]  # fmt: skip
        if "BOTH" in kinds:
            places = np.flatnonzero(kind == kinds["BOTH"])
            first = layout.get(words[places], "first").astype(np.int64)
            for side, prefix in enumerate(("both.r.", "both.s.")):
                part = self.part(layout, words, places, side, prefix, names)
                part[0] += first != side
                parts.append(part)
        moment = np.concatenate([part[0] for part in parts])
        order = np.argsort(moment, kind="stable")
        columns = [np.concatenate(column)[order] for column in zip(*parts, strict=True)]
        self.moment, self.side, self.time, *self.keys = columns

    def keep(self, chosen):
        """Leave out all tuples but the chosen ones."""
        columns = (self.moment, self.side, self.time, *self.keys)
        self.moment, self.side, self.time, *self.keys = (column[chosen] for column in columns)

    @staticmethod
    def part(layout, words, places, side, prefix, names):
        """Return the columns of the tuples of one side in the words at ``places``."""
        chosen = words[places]
        return [
            2 * places.astype(np.int64),
            np.full(len(places), side),
            layout.get(chosen, f"{prefix}timestamp"),
            *(layout.get_ordered(chosen, prefix + name) for name in names),
        ]
