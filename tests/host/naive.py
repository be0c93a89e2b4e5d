# SPDX-License-Identifier: Apache-2.0
"""Oracles that are too simple to be wrong: the join and the accelerator, one tuple at a time."""

from host import CountWindow


def naive_join(arrivals, predicate, windows):
    """Return all pairs ``(probe, stored)``, by comparing every tuple with all earlier ones."""
    keys = [
        {name: int(column[i]) for name, column in arrivals.keys.items()}
        for i in range(len(arrivals))
    ]
    pairs = []
    for probe, side in enumerate(arrivals.side):
        earlier = [u for u in range(probe) if arrivals.side[u] != side]
        window = windows[1 - side]
        if isinstance(window, CountWindow):
            earlier = earlier[-window.size :]
        else:
            now = int(arrivals.timestamp[probe])
            earlier = [u for u in earlier if now - int(arrivals.timestamp[u]) <= window.lifespan]
        for stored in earlier:
            r, s = (probe, stored) if side == 0 else (stored, probe)
            if predicate(keys[r], keys[s]):
                pairs.append((probe, stored))
    return pairs


class NaiveAccelerator:
    """Executes input words one by one and says which result words they cause.

    Input words are ``("R", keys, timestamp)``, ``("S", keys, timestamp)`` or
    ``(operation, index, value)``. Result words are ``("PAIR", side, probe, core, row, lane)``,
    ``("STAR", side, overflow, disorder, illegal)`` and ``("MARK", overflow, disorder, illegal)``.
    An input word ``("ILLEGAL", ...)`` stands for any that is dropped.
    """

    def __init__(self, parameters, predicate=None):
        self.p = parameters
        self.custom = predicate
        self.bounds = [[-(1 << key.bits), (1 << key.bits) - 1] for key in parameters.keys]
        self.windows = [("count", parameters.capacity)] * 2
        self.period = 1
        self.results = []
        self.clear()

    def clear(self):
        self.stored = [[], []]  # (ordinal, keys, timestamp), oldest first
        self.ordinal = [0, 0]
        self.overflow = [False, False]
        self.newest = 0
        self.disorder = False
        self.illegal = False
        self.open = [[], []]  # (probe index, ordinals of its matches)
        self.since_star = [0, 0]
        self.passed = [0, 0]

    def run(self, script):
        for kind, first, second in script:
            if kind == "ILLEGAL":
                self.illegal = True
            elif kind in ("R", "S"):
                self.tuple("RS".index(kind), first, second)
            else:
                self.control(kind, first, second)
        return self.results

    def tuple(self, side, keys, now):
        if self.p.timestamp_bits:
            if self.disorder or now < self.newest:
                self.disorder = True
                return
            self.newest = now
        known = list(self.overflow)
        for which, (kind, size) in enumerate(self.windows):
            if kind == "time":
                self.stored[which] = [u for u in self.stored[which] if now - u[2] <= size]
        self.probe(side, keys)
        self.store(side, keys, now)
        closing = [False, False]
        closing[side] = (
            len(self.open[side]) == self.p.engine.probes or self.since_star[side] == self.period
        )
        other = 1 - side
        if self.open[other]:
            self.passed[other] += 1
            closing[other] = self.passed[other] == self.p.cores * self.p.slack
        for which in (0, 1):
            if closing[which]:
                due = self.since_star[which] == self.period
                self.close(which, due or 0 < self.period <= self.p.engine.probes, known)

    def probe(self, side, keys):
        matches = [
            ordinal
            for ordinal, stored, _ in self.stored[1 - side]
            if self.holds(*((keys, stored) if side == 0 else (stored, keys)))
        ]
        if not self.open[side]:
            self.passed[side] = 0
        index = self.since_star[side] % (1 << self.p.engine.probe_bits)
        self.open[side].append((index, matches))
        self.since_star[side] += 1

    def store(self, side, keys, now):
        kind, size = self.windows[side]
        if kind == "time" and len(self.stored[side]) == self.p.capacity:
            self.overflow[side] = True
        else:
            self.stored[side].append((self.ordinal[side], keys, now))
        if kind == "count":
            self.stored[side] = self.stored[side][-size:]
        self.ordinal[side] += 1

    def holds(self, r, s):
        if self.custom is not None:
            return self.custom(r, s)
        if self.p.predicate.kind == "equality":
            return r == s
        return all(
            low <= r[key.name] - s[key.name] <= high
            for key, (low, high) in zip(self.p.keys, self.bounds, strict=True)
        )

    def close(self, side, star, overflow):
        p = self.p
        pairs = sorted(
            (ordinal % p.cores, ordinal // p.cores, probe)
            for probe, matches in self.open[side]
            for ordinal in matches
        )
        for core, local, probe in pairs:
            row, lane = local // p.engine.lanes % p.ring_rows, local % p.engine.lanes
            self.results.append(("PAIR", side, probe, core, row, lane))
        if star:
            flag = overflow[1 - side] << (1 - side)
            self.results.append(("STAR", side, flag, self.disorder, self.illegal))
            self.since_star[side] = 0
        self.open[side] = []

    def control(self, operation, index, value):
        if operation in ("BOUND_LOW", "BOUND_HIGH"):
            bits = self.p.keys[index].bits
            nearest = min(max(value, -(1 << bits)), (1 << bits) - 1)
            self.bounds[index][operation == "BOUND_HIGH"] = nearest
            return
        for side in (0, 1):
            if self.since_star[side]:
                self.close(side, True, self.overflow)
        if operation in ("CLEAR", "FLUSH", "PRECISION"):
            flags = self.overflow[0] | self.overflow[1] << 1
            self.results.append(("MARK", flags, self.disorder, self.illegal))
        if operation == "CLEAR":
            self.clear()
        elif operation == "PRECISION":
            longest = 1 << self.p.engine.probe_bits
            self.period = value if 0 <= value <= longest else longest
        elif operation in ("WINDOW", "LIFESPAN"):
            if operation == "WINDOW":
                self.windows[index] = ("count", min(max(value, 1), self.p.capacity))
            else:
                longest = (1 << self.p.timestamp_bits) - 1
                self.windows[index] = ("time", min(max(value, 0), longest))
            self.stored[index] = []
            self.ordinal[index] = 0
