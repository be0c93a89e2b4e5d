# SPDX-License-Identifier: Apache-2.0
"""The contract of a device as a state machine: any calls in any order, of any size.

:class:`DeviceMachine` queues words, offers some of them, leaves room for some results, and closes
devices in between. What leaves must be what
:class:`~tests.host.naive.NaiveAccelerator` says, whatever the calls were.
"""

from collections import deque
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
import numpy as np
import pytest

from host.devices import Device, Stamps
from host.devices.waiting import DeviceThread
from host.errors import DeviceError
from sim.scenarios import illegal_word
from tests.host.device_contract import CYCLES, PATIENCE, empty, punctuation
from tests.host.small_bundles import (
    FLUSH,
    by_star,
    new_naive,
    pack,
    random_tuples,
    side_by_side,
    unpack,
)

__all__ = ["DeviceMachine", "ThreadedDevice"]

SEEDS = st.integers(0, 999)


class ThreadedDevice(Device):
    """A device whose exchanges are run by a :class:`DeviceThread`, as those of the runtime are."""

    def __init__(self, device):
        self.uri, self.manifest = device.uri, device.manifest
        self._device = device
        self._thread = DeviceThread(device)
        self._closed = False

    def exchange(self, words, results, *, cycles, stamps=None):
        if self._closed:
            return self._device.exchange(words, results, cycles=cycles, stamps=stamps)
        self._thread.begin(words, results, cycles=cycles, stamps=stamps)
        return self._thread.finish(60).done

    def counters(self):
        return self._device.counters()

    def close(self):
        self._closed = True
        self._thread.close()
        self._device.close()


class Segment(NamedTuple):
    """What must come up to a mark, and how much of it is fixed."""

    want: list
    free: bool
    overflowed: bool

    def fixed(self, results):
        """Return what the contract fixes of ``results``."""
        kept = punctuation(results) if self.overflowed else results
        return by_star(kept) if self.free else kept


class DeviceMachine(RuleBasedStateMachine):
    """Any use of a device; a subclass gives ``shapes`` and ``open_device``."""

    #: Parameters of the accelerators that the machine chooses from.
    shapes = ()

    def open_device(self, parameters, seed):
        """Open a device, right after reset; ``seed`` is for what it does at random."""
        raise NotImplementedError

    @initialize(data=st.data(), seed=SEEDS)
    def begin(self, data, seed):
        self.parameters, self.seed = data.draw(st.sampled_from(self.shapes)), seed
        self.open()

    def open(self):
        self.device = self.open_device(self.parameters, self.seed)
        self.naive = new_naive(self.parameters)
        self.words = empty(self.device.manifest.input_word)
        self.offered = False  # whether the first of these words has been offered in vain
        self.segments = deque()
        self.got = []
        self.taken = {"tuples_r": 0, "tuples_s": 0, "illegal": 0}
        self.left = {"PAIR": 0, "STAR": 0, "MARK": 0}
        self.now = 0
        self.last_stamp = 0

    # ---- what is sent

    def send(self, *steps):
        """Queue input words, and let the oracle execute them."""
        for step in steps:
            naive = self.naive
            free = naive.period == 0 or naive.period > self.parameters.engine.probes
            overflowed = any(naive.overflow)
            naive.run([step])
            if step[0] in ("R", "S"):
                self.taken[f"tuples_{step[0].lower()}"] += not naive.disorder
            elif step[0] == "ILLEGAL":
                self.taken["illegal"] += 1
            if naive.results and naive.results[-1][0] == "MARK":
                results = naive.results[:]
                if self.parameters.engine.result_streams == 2:
                    results = side_by_side(results)
                self.segments.append(Segment(results, free, overflowed))
                naive.results.clear()
        self.words = np.concatenate([self.words, pack(self.device.manifest, steps)])

    @rule(seed=SEEDS, count=st.integers(1, 40), share_r=st.sampled_from([0.5, 0.5, 0.1, 1.0]))
    def tuples(self, seed, count, share_r):
        """Tuples of keys that often match; time stands still or goes on."""
        rng = np.random.default_rng(seed)
        last = (1 << self.parameters.timestamp_bits) - 1
        chosen = random_tuples(
            self.parameters, rng, count, share_r=share_r, pace=seed % 4, start=self.now
        )
        chosen = [(side, keys, min(now, last)) for side, keys, now in chosen]
        self.now = chosen[-1][2]
        self.send(*chosen)

    @rule(data=st.data(), side=st.sampled_from("RS"))
    def extreme(self, data, side):
        """One tuple with any keys."""
        keys = {}
        for key in self.parameters.keys:
            low = -(1 << key.bits - 1) if key.signed else 0
            keys[key.name] = data.draw(st.integers(low, low + (1 << key.bits) - 1))
        self.send((side, keys, self.now))

    @precondition(lambda self: self.parameters.timestamp_bits and self.now)
    @rule(seed=SEEDS)
    def disorder(self, seed):
        """A tuple whose time has passed."""
        ((side, keys, _),) = random_tuples(self.parameters, np.random.default_rng(seed), 1)
        self.send((side, keys, seed % self.now))

    @rule(
        operation=st.sampled_from(["BOUND_LOW", "BOUND_HIGH", "WINDOW", "LIFESPAN"]),
        index=st.integers(0, 1),
        value=st.one_of(st.integers(-6, 6), st.integers(-(1 << 9), (1 << 9) - 1)),
    )
    def configure(self, operation, index, value):
        """A bound or a window, also out of range."""
        if index < self.device.manifest.indices.get(operation, 0):
            self.send((operation, index, value))

    @rule(period=st.integers(0, 9))
    def precision(self, period):
        self.send(("PRECISION", 0, period))

    @rule()
    def clear(self):
        self.send(("CLEAR", 0, 0))
        self.now = 0

    @rule()
    def flush(self):
        self.send(FLUSH)

    @rule(seed=SEEDS)
    def illegal(self, seed):
        word = illegal_word(self.device.manifest, np.random.default_rng(seed))
        self.send(("ILLEGAL", word, None))

    # ---- how it is sent

    @rule(
        offer=st.integers(0, 9) | st.just(1 << 20),
        room=st.integers(0, 5) | st.just(300),
        cycles=st.integers(0, 3) | st.just(CYCLES),
        stamped=st.booleans(),
    )
    def exchange(self, offer, room, cycles, stamped):
        """Call the device once, with as little as nothing to take and to give."""
        self.call(offer, room, cycles, stamped=stamped)

    def call(self, offer, room, cycles, *, stamped=False):
        """Call the device once, check its answer, and return it."""
        words = self.words[: max(offer, self.offered)].copy()
        words.flags.writeable = False
        results = empty(self.device.manifest.result_word, room)
        stamps = Stamps.for_arrays(words, results) if stamped else None
        done = self.device.exchange(words, results, cycles=cycles, stamps=stamps)
        assert 0 <= done.accepted <= len(words)
        assert 0 <= done.produced <= room
        assert 0 <= done.cycles <= cycles
        self.words = self.words[done.accepted :]
        self.offered = done.accepted < len(words)
        came = unpack(self.device.manifest, results[: done.produced])
        kinds = [word[0] for word in came]
        assert "MARK" not in kinds[:-1], "exchange must return after a mark"
        ends_with_mark = kinds[-1:] == ["MARK"]
        assert (
            done.produced == room
            or ends_with_mark
            or done.cycles == cycles
            or (done.cycles == 0 and done.accepted == len(words))
        ), "the device returned for no reason"
        if stamps is not None:
            self.check_stamps(stamps.accepted[: done.accepted], stamps.produced[: done.produced])
        self.receive(came)
        return done

    def check_stamps(self, *transfers):
        """Transfers of one kind follow one another, and all of those of the calls before."""
        latest = self.last_stamp
        for stamps in transfers:
            cycles = [self.last_stamp, *map(int, stamps)]
            assert cycles == sorted(cycles)
            latest = max(latest, cycles[-1])
        self.last_stamp = latest

    def receive(self, came):
        """Compare what has come up to a mark."""
        for word in came:
            self.left[word[0]] += 1
            self.got.append(word)
            if word[0] == "MARK":
                assert self.segments, "a mark that nothing asked for"
                segment = self.segments.popleft()
                if (
                    self.parameters.engine.result_streams == 2
                ):  # the words of a mark come in many calls
                    self.got = side_by_side(self.got)
                assert segment.fixed(self.got) == segment.fixed(segment.want)
                self.got = []

    @rule(offer=st.sampled_from([3, 1 << 20]), room=st.sampled_from([2, 200]))
    def settle(self, offer, room):
        """Send all words and a FLUSH, and await all results."""
        self.send(FLUSH)
        patience = PATIENCE
        while self.segments:
            done = self.call(offer, room, CYCLES if offer > 3 else 3)
            patience = PATIENCE if done.accepted or done.produced else patience - 1
            assert patience, f"no progress with {len(self.words)} words left"
        assert not len(self.words)
        assert not self.got
        self.count()

    def count(self):
        """Compare counters that the words themselves explain; nothing is under way."""
        counters = self.device.counters()
        assert set(counters) == {counter.name for counter in self.device.manifest.counters}
        names = {"PAIR": "results", "STAR": "stars", "MARK": "marks"}
        want = self.taken | {names[kind]: count for kind, count in self.left.items()}
        assert {name: counters[name] for name in want} == want

    # ---- what is refused

    @rule(which=st.sampled_from(["signed", "flat", "wide", "constant", "spread"]))
    def refused(self, which):
        """Arrays of another kind or shape are refused, and change nothing."""
        word, result = self.device.manifest.input_word, self.device.manifest.result_word
        words, results = empty(word, 2), empty(result, 2)
        if which == "signed":
            words = words.astype(np.int64)
        elif which == "flat":
            words = words.reshape(-1)
        elif which == "wide":
            results = np.zeros((2, result.columns + 1), np.uint64)
        elif which == "constant":
            results.flags.writeable = False
        else:
            words = np.zeros((4, word.columns), np.uint64)[::2]
        with pytest.raises(DeviceError):
            self.device.exchange(words, results, cycles=1)

    @rule()
    def read_counters(self):
        """Reading counters changes nothing of the answer."""
        assert all(value >= 0 for value in self.device.counters().values())

    @rule()
    def reopen(self):
        """Close in the middle of anything; the next device knows nothing of it."""
        self.close()
        self.open()

    def close(self):
        device = self.device
        device.close()
        device.close()
        words = empty(device.manifest.input_word)
        with pytest.raises(DeviceError, match="closed"):
            device.exchange(words, empty(device.manifest.result_word, 1), cycles=1)
        with pytest.raises(DeviceError, match="closed"):
            device.counters()

    def teardown(self):
        if hasattr(self, "device"):
            try:
                self.settle(1 << 20, 200)
            finally:
                self.close()
