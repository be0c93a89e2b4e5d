# SPDX-License-Identifier: Apache-2.0
"""An external memory behind AXI4 for Amaranth's simulator: late, with pauses, and by the rules."""

from collections import deque
import random

__all__ = ["AxiMemory", "AxiRuleError"]

#: A burst may not cross a multiple of so many bytes.
BOUNDARY = 4096
INCREMENTAL = 1
SLAVE_ERROR = 2


class AxiRuleError(AssertionError):
    """A master broke a rule of AXI4."""


class AxiMemory:
    """Answers the port of a component, and checks what the component does there.

    It is as unhelpful as AXI allows: a read returns what was there when it was requested, and a
    write takes effect when it is answered. Where nothing was written, there are random bits.

    Parameters
    ----------
    axi : interface
        A :class:`hdl.memory.axi4.Axi4` as its master sees it, or the channels of one direction.
    latency : int or callable
        Cycles from a request to the first beat, or from the last beat of a write to its response.
    stalls : float
        Probability that a channel pauses in a cycle.
    seed : int
    fails : callable
        Whether the burst at an address is answered with an error.
    content : dict of int to int or None
        Beats by their addresses, which several ports may share.

    Attributes
    ----------
    beats : list of int
        Cycle of every beat that was read.
    reads, writes : list of (int, int)
        Address and beats of every burst.
    outstanding : int
        Most beats that were requested and not sent.
    """

    def __init__(
        self, axi, *, latency=1, stalls=0.0, seed=0, fails=lambda address: False, content=None
    ):
        self.axi = axi
        self.latency = latency if callable(latency) else lambda: latency
        self.stalls = stalls
        self.fails = fails
        self.seed = seed
        self.beats, self.reads, self.writes = [], [], []
        self.outstanding = 0
        self._random = random.Random(seed)
        self._words = {} if content is None else content
        self._cycle = 0
        self._sending = deque()  # beats that were requested: when due, payload
        self._answers = deque()  # bursts that were written: when due, address, words
        self._requested, self._arrived = deque(), deque()  # bursts to write; their beats
        self._held = {}  # payload of each channel that was not taken

    def word(self, address):
        """The beat at an address."""
        if address not in self._words:
            self._words[address] = self._random.getrandbits(len(self.axi.rdata))
        return self._words[address]

    @property
    def is_busy(self):
        """Whether a transaction is under way."""
        return any((self._sending, self._answers, self._requested, self._arrived))

    def attach(self, simulator, domain="sync"):
        """Answer for as long as a simulation runs."""
        self._domain = domain
        simulator.add_testbench(self.process, background=True)

    async def process(self, ctx):
        """Answer cycle by cycle."""
        members = list(self.axi.signature.members)
        names = [name for name in ("ar", "aw", "w") if f"{name}valid" in members]
        offers = {"r": False, "b": False}
        while True:
            for name in names:
                ctx.set(getattr(self.axi, f"{name}ready"), not self.pauses())
            if "ar" in names:
                offers["r"] = self.offers(self._sending, offers["r"])
                for name, value in (self._sending[0][1] if offers["r"] else {}).items():
                    ctx.set(getattr(self.axi, name), value)
                ctx.set(self.axi.rvalid, offers["r"])
            if "aw" in names:
                offers["b"] = self.offers(self._answers, offers["b"])
                if offers["b"]:
                    wrong = self.fails(self._answers[0][1])
                    ctx.set(self.axi.bresp, SLAVE_ERROR * wrong)
                ctx.set(self.axi.bvalid, offers["b"])
            _, _, *values = await ctx.tick(self._domain).sample(
                *(getattr(self.axi, n) for n in members)
            )
            seen = dict(zip(members, values, strict=True))
            self._cycle += 1
            for name in names:
                getattr(self, name)(seen, self.taken(name, seen))
            if offers["r"] and seen["rready"]:
                self._sending.popleft()
                self.beats.append(self._cycle - 1)
                offers["r"] = False
            if offers["b"] and seen["bready"]:
                _, address, words = self._answers.popleft()
                offers["b"] = False
                if not self.fails(address):
                    self._words.update(words)

    def pauses(self):
        """Does a channel pause in this cycle?"""
        return self._random.random() < self.stalls

    def offers(self, queue, before):
        """Is the first answer of a queue offered in this cycle?"""
        return bool(queue and queue[0][0] <= self._cycle and (before or not self.pauses()))

    def taken(self, name, seen):
        """Is something taken from a channel, that has been the same since it was offered?"""
        payload = {n: v for n, v in seen.items() if n.startswith(name) and not n.endswith("ready")}
        held = self._held.pop(name, payload)
        if held != payload:
            raise AxiRuleError(f"Channel {name}: {held} became {payload} (seed {self.seed})")
        if payload[f"{name}valid"] and not seen[f"{name}ready"]:
            self._held[name] = payload
        return payload[f"{name}valid"] and seen[f"{name}ready"]

    def burst(self, name, seen):
        """The addresses of a requested burst, which is a legal one."""
        size = len(self.axi.rdata if name == "ar" else self.axi.wdata) // 8
        first, beats = seen[f"{name}addr"], seen[f"{name}len"] + 1
        legal = 1 << seen[f"{name}size"] == size and seen[f"{name}burst"] == INCREMENTAL
        if not legal or first // BOUNDARY != (first + beats * size - 1) // BOUNDARY or first % size:
            raise AxiRuleError(f"Burst of {beats} beats at {first} on {name}: {seen}")
        (self.reads if name == "ar" else self.writes).append((first, beats))
        return [first + n * size for n in range(beats)]

    def ar(self, seen, taken):
        """A burst may be requested to be read."""
        if not taken:
            return
        addresses = self.burst("ar", seen)
        due = self._cycle + max(1, self.latency()) - 1
        wrong = SLAVE_ERROR * self.fails(addresses[0])
        for address in addresses:
            last = address == addresses[-1]
            beat = {"rdata": self.word(address), "rlast": last, "rresp": wrong}
            self._sending.append((due, beat))
        self.outstanding = max(self.outstanding, len(self._sending))

    def aw(self, seen, taken):
        """A burst may be requested to be written."""
        if taken:
            self._requested.append(self.burst("aw", seen))
            self.complete()

    def w(self, seen, taken):
        """A beat of a burst may arrive."""
        if not taken:
            return
        whole = seen["wstrb"] + 1 == 1 << len(self.axi.wstrb)
        if seen["wstrb"] and not whole:
            raise AxiRuleError(f"Beat with strobes {seen['wstrb']:b}")
        self._arrived.append((seen["wdata"] if whole else None, seen["wlast"]))
        self.complete()

    def complete(self):
        """Answer a burst when all its beats have arrived."""
        while self._requested and len(self._arrived) >= len(self._requested[0]):
            addresses = self._requested.popleft()
            beats = [self._arrived.popleft() for _ in addresses]
            if [last for _, last in beats] != [0] * (len(beats) - 1) + [1]:
                raise AxiRuleError(f"Last beats of a burst of {len(beats)}: {beats}")
            words = {
                a: word for a, (word, _) in zip(addresses, beats, strict=True) if word is not None
            }
            due = self._cycle + max(1, self.latency()) - 1
            self._answers.append((due, addresses[0], words))
