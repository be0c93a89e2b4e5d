# SPDX-License-Identifier: Apache-2.0
"""When groups end and stars follow, tuple by tuple."""

__all__ = ["Schedule"]


class Schedule:
    """When groups end, written down from the architecture, section 2, one side at a time."""

    def __init__(self, parameters, period):
        longest = 1 << parameters.engine.probe_bits
        self.period = period if 0 <= period <= longest else longest
        self.probes = parameters.engine.probes
        self.limit = parameters.cores * parameters.slack
        self.free = self.period == 0 or self.period > parameters.engine.probes
        self.group = [0, 0]
        self.passed = [0, 0]
        self.since = [0, 0]

    def tuple(self, side):
        """Close and star bits of a tuple of ``side``."""
        close = star = 0
        other = 1 - side
        self.group[side] += 1
        self.since[side] += 1
        due = self.since[side] == self.period
        if due or self.group[side] == self.probes:
            close |= 1 << side
            if due or not self.free:
                star |= 1 << side
        if self.group[other]:
            self.passed[other] += 1
            if self.passed[other] == self.limit:
                close |= 1 << other
                if not self.free:
                    star |= 1 << other
        self.end(close, star)
        return close, star

    def finish(self):
        """Close and star bits of a control word that ends groups."""
        star = sum(1 << side for side in range(2) if self.since[side])
        self.end(3, star)
        return 3, star

    def end(self, close, star):
        """Begin new groups."""
        for side in range(2):
            if close >> side & 1:
                self.group[side] = self.passed[side] = 0
            if star >> side & 1:
                self.since[side] = 0
