# SPDX-License-Identifier: Apache-2.0
"""Which core stores and which one loses its oldest tuple, from lists instead of counters."""

from hdl.ingress.storage_turns import LISTS

__all__ = ["Turns"]


class Turns:
    """Turns in lists: the cores that hold each side's tuples, with their segments.

    A window of no size is time-based; its tuples are not kept.
    """

    def __init__(self, parameters):
        self.cores = parameters.cores
        self.live = list(range(self.cores))
        self.staged, self.number = [], 0
        self.held, self.turn, self.size = [[], []], [0, 0], [parameters.capacity] * 2

    def append(self, core):
        """Append a core; return whether it is refused."""
        if not 0 <= core < self.cores or core in self.staged:
            return True
        self.staged.append(core)
        return False

    def begin(self):
        """Begin a segment; return whether it is refused."""
        oldest = min(
            held[0][0] if held and size else self.number
            for held, size in zip(self.held, self.size, strict=True)
        )
        if not self.staged or self.number - oldest >= LISTS - 2:
            return True
        self.live, self.staged = self.staged, []
        self.number += 1
        self.turn = [0, 0]
        return False

    def next(self, side):
        """Return the core that stores the next tuple, and the core that loses its oldest one."""
        held, size = self.held[side], self.size[side]
        core = self.live[self.turn[side] % len(self.live)]
        return core, held[0][1] if size and len(held) == size else None

    def take(self, side):
        """Store a tuple."""
        core, leaves = self.next(side)
        self.turn[side] += 1
        if leaves is not None:
            self.held[side].pop(0)
        if self.size[side]:
            self.held[side].append((self.number, core))

    def restart(self, side, size):
        """Begin an empty window; one of no size is time-based."""
        self.held[side], self.turn[side], self.size[side] = [], 0, size

    def clear(self):
        """Empty both windows, and discard the list that is being written."""
        self.staged = []
        for side in range(2):
            self.restart(side, self.size[side])
