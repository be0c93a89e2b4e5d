# SPDX-License-Identifier: Apache-2.0
"""The self test of a device, for the first time that a board is switched on (`docs/boards.md`)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from enum import Enum
from functools import partial
import random
import time

import numpy as np

from host.arrays import UInt64s
from host.devices.contract import Device
from host.devices.linked import (
    ENABLE_ERROR,
    ENABLE_MARK,
    INTERRUPT_ENABLE,
    MANIFEST_HASH,
    VERSION,
    LinkedDevice,
)
from host.devices.software import SoftwareDevice
from host.errors import DeviceError, JoinError, UsageError
from host.installation import command
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from host.protocol.segments import require_pairs

__all__ = [
    "Finding",
    "HINTS",
    "NO_SUCH_REGISTER",
    "Outcome",
    "SmallJoin",
    "StepFailedError",
    "answer",
    "difference",
    "self_test",
    "small_join",
]

# What a step of a self test has found.


class Outcome(Enum):
    """Outcome of a step of the self-test."""

    #: It found what it should find.
    PASSED = "ok"
    #: It did not.
    FAILED = "FAILED"
    #: The device has nothing of that kind.
    ABSENT = "-"
    #: A step before it has failed.
    UNTRIED = "untried"


@dataclass(frozen=True)
class Finding:
    """One step of a self test, after it was tried.

    Attributes
    ----------
    step : str
        Name of the step.
    outcome : Outcome
        How it has ended.
    text : str
        What it has found.
    hint : str
        Where to look for the fault; empty unless the step has failed.
    """

    step: str
    outcome: Outcome
    text: str
    hint: str = ""


class StepFailedError(Exception):
    """A step has found something else than it should; the message says what."""


# A small join in words, and the results that the reference join has for it.

#: Tuples of a window at most, so that windows overflow into the past within a small join.
WINDOW = 50
#: Values of a key, around zero or from zero on, so that about one pair in ten matches.
VALUES = 11
#: Result words that a device may return at once, and cycles of one exchange with a simulation.
ROOM, CYCLES = 256, 20_000


@dataclass(frozen=True, eq=False)
class SmallJoin:
    """Input words of a join, and what it must answer.

    Attributes
    ----------
    words : UInt64s
        Input words: the configuration, tuples, FLUSH.
    results : UInt64s
        Results of the reference join, as :func:`in_order` has them.
    marks : int
        Marks among them; the last one is the last word.
    tuples : tuple of int
        Tuples of R and of S.
    """

    words: UInt64s
    results: UInt64s
    marks: int
    tuples: tuple[int, int]


def small_join(manifest: Manifest, *, tuples: int, seed: int) -> SmallJoin:
    """Return a join of random tuples over count-based windows, with a star for each probe.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    tuples : int
        Tuples of both sides together.
    seed : int
        Of the tuples.

    Raises
    ------
    ManifestError
        If the accelerator has no model in software.
    """
    codec, rng = WordCodec(manifest), np.random.default_rng(seed)
    words = [
        codec.pack_control(name, index, value)
        for index in range(len(manifest.keys))
        for name, value in (("BOUND_LOW", -1), ("BOUND_HIGH", 1))
        if name in manifest.operations
    ]
    size = min(WINDOW, manifest.capacity)
    words += [codec.pack_control("WINDOW", side, size) for side in range(2)]
    words += [codec.pack_control("PRECISION", 0, 1), codec.pack_control("CLEAR")]
    keys = {}
    for key in manifest.keys:
        low = max(-(VALUES // 2), key.low)
        values = rng.integers(low, min(low + VALUES - 1, key.high), tuples, endpoint=True)
        keys[key.name] = values.astype(np.int64 if key.signed else np.uint64)
    sides = rng.integers(0, 2, tuples)
    times = np.minimum(np.arange(tuples), min(tuples, (1 << manifest.timestamp_bits) - 1))
    words.append(codec.pack_tuples(sides, keys, times))
    words.append(codec.pack_control("FLUSH"))
    asked = np.ascontiguousarray(np.concatenate(words))
    marks = sum(name in manifest.operations for name in ("PRECISION", "CLEAR", "FLUSH"))
    with SoftwareDevice(manifest) as model:
        results = in_order(manifest, answer(model, asked, marks, seconds=60.0))
    counts = int((sides == 0).sum()), int((sides == 1).sum())
    return SmallJoin(asked, results, marks, counts)


def answer(device: Device, words: UInt64s, marks: int, *, seconds: float) -> UInt64s:
    """Send words to a device, and return all results up to the last mark.

    Parameters
    ----------
    device : Device
        An open device.
    words : UInt64s
        Input words.
    marks : int
        Marks that will come.
    seconds : float
        Longest time without a word in either direction.

    Raises
    ------
    StepFailedError
        If nothing happens for so long.
    """
    codec, sent, left = WordCodec(device.manifest), len(words), marks
    found: list[UInt64s] = []
    end = time.monotonic() + seconds
    while left > 0:
        results = np.zeros((ROOM, device.manifest.result_word.columns), np.uint64)
        done = device.exchange(words, results, cycles=CYCLES)
        words = words[done.accepted :]
        some = results[: done.produced]
        found.append(some)
        left -= int(codec.marks(some).sum())
        if done.accepted or done.produced:
            end = time.monotonic() + seconds
        elif time.monotonic() > end:
            raise StepFailedError(
                f"nothing came for {seconds:g} s: {sent - len(words)} of {sent} input words were "
                f"taken, {sum(map(len, found))} result words have come, and {left} of {marks} "
                "marks have not"
            )
    return np.concatenate(found)


def in_order(manifest: Manifest, words: UInt64s) -> UInt64s:
    """Return the results in result words in an order that does not depend on anybody's stalls.

    Of two result ports, the results of R come before those of S up to each mark. The pairs of one
    probe, which an index finds in any order, are sorted.
    """
    codec = WordCodec(manifest)
    results = codec.split_words(words)[0]
    fields = codec.unpack_results(results)
    if len(manifest.result_ports) > 1:
        is_mark = fields.kind == codec.mark
        epochs = np.cumsum(is_mark) - is_mark
        order = np.lexsort((np.where(is_mark, 2, fields.side), epochs))
        results, fields = results[order], codec.unpack_results(results[order])
    if not manifest.keeps_stored_order:
        is_pair = fields.kind == codec.pair
        periods = np.cumsum(~is_pair)
        periods -= ~is_pair  # a star ends the period of its probe
        results = results[np.lexsort((*results.T, ~is_pair, periods))]
    return results


def difference(manifest: Manifest, found: UInt64s, wanted: UInt64s) -> str:
    """Return what distinguishes results from those that were wanted; empty if nothing does.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the accelerator.
    found : UInt64s
        Result words of a device.
    wanted : UInt64s
        :attr:`SmallJoin.results`.
    """
    results = in_order(manifest, found)
    if np.array_equal(results, wanted):
        return ""
    least = min(len(results), len(wanted))
    unlike = np.flatnonzero((results[:least] != wanted[:least]).any(axis=1))
    if not len(unlike):
        return f"{len(results)} results have come, and the reference join has {len(wanted)}"
    at = int(unlike[0])
    kinds = {number: name for name, number in manifest.result_kinds.items()}
    told = [
        f"{kinds.get(int(WordCodec(manifest).unpack_results(rows[at : at + 1]).kind[0]))} "
        f"{rows[at].tobytes().hex()}"
        for rows in (results, wanted)
    ]
    return (
        f"{len(unlike)} of {least} results differ from those of the reference join; the first one "
        f"is number {at}: {told[0]} instead of {told[1]} (fields from the lowest byte up)"
    )


# The steps of a self test, in the order in which a fault shows itself best.

#: An address without a register.
NO_SUCH_REGISTER = 0xFFC
#: Register requests of a ping. Their values have every byte once, the special characters of
#: terminals among them.
PINGS = 64
#: Seconds without a word after which a small join has failed.
SECONDS = 30.0
#: Share of frames that are sent again from which on the line is called bad.
BAD_LINE = 0.05

#: Where to look for the fault when a step fails.
HINTS = {
    "open": "Is the path or port right, and may this user open it (group dialout)? Does another "
    "program use it? For a board: is the bitstream loaded, and is the baud rate the one that the "
    "report of the bitstream names?",
    "open: silent": "No byte came: power, cable, the right one of the board's ports, RX and TX "
    "exchanged, another bitstream in the device; with Ethernet, another address or network. The "
    "LED lights when a greeting has come in: if it does, only the way back is broken.",
    "open: garbled": "Bytes came that are no frames: nearly always another baud rate than the "
    "bitstream's, or another program that talks to the same port.",
    "open: other": "The board is alive, and the line is good: only the bitstream and the bundle "
    "do not belong together.",
    "identity": "The greeting and the registers hold the same hash from the same constant: a "
    "difference means that answers belong to other requests. Unplug the board and try again.",
    "registers": "The link works, and the registers do not: a bitstream that misses its clock (see "
    "the slowest path in its report), or an unstable supply.",
    "ping": "Requests get lost or damaged: look at the share of garbled frames in the step `line`; "
    "try a shorter cable, another hub, a common ground.",
    "join": "The link works, and the accelerator answers something else than the reference join: "
    "a bitstream that misses its clock, or a fault of the kit. Run the same with the bundle's "
    f"simulation: `{command('host selftest sim:BUNDLE')}`; if that passes, report both.",
    "counters": "The results are right and the counters are not: words were sent twice or lost "
    "before they were counted. Try again; if it repeats, report it.",
    "line": "The line damages bytes. No result is wrong, but the link is slow: a shorter cable, "
    "another hub or adapter, a common ground, a lower baud rate.",
}


def self_test(
    opener: Callable[[], AbstractContextManager[Device]], *, tuples: int = 200, seed: int = 1
) -> Iterator[Finding]:
    """Try everything that a device must be able to do, from the line up.

    A step behind one that has failed is not tried. The device is opened by the first step, which
    resets an accelerator behind a link, and closed at the end.

    Parameters
    ----------
    opener : callable
        Opens the device for a block of code.
    tuples : int
        Tuples of the small join, both sides together.
    seed : int
        Of random values.

    Yields
    ------
    Finding
        One for each step, as soon as it has ended.

    Raises
    ------
    UsageError
        If there are no tuples. While the findings are taken: if the device's URI or its bundle
        cannot be used.
    """
    if tuples < 1:
        raise UsageError(f"Tuples of the small join must be at least 1, not {tuples!r}.")
    return _findings(opener, tuples, seed)


def _findings(
    opener: Callable[[], AbstractContextManager[Device]], tuples: int, seed: int
) -> Iterator[Finding]:
    with ExitStack() as held:
        test = _SelfTest(lambda: held.enter_context(opener()), tuples, seed)
        failed = False
        for name, step in test.steps:
            if failed:
                yield Finding(name, Outcome.UNTRIED, "a step before it has failed")
                continue
            try:
                text = step()
            except UsageError:
                raise  # the request is wrong, not the device
            except (JoinError, StepFailedError) as error:
                failed = True
                yield Finding(name, Outcome.FAILED, str(error), HINTS[_hint_of(name, error)])
            else:
                found = Outcome.ABSENT if text is None else Outcome.PASSED
                yield Finding(name, found, text or "this kind of device has none")


def _hint_of(name: str, error: Exception) -> str:
    """Return the key of the hint for an error."""
    fault = error.fault if isinstance(error, DeviceError) else ""
    return f"open: {fault}" if fault in ("garbled", "silent", "other") else name


class _SelfTest:
    """The steps, with what the later ones need of the earlier ones."""

    def __init__(self, opener: Callable[[], Device], tuples: int, seed: int) -> None:
        self._opener = opener
        self._tuples, self._seed = tuples, seed
        self._device: Device | None = None
        self._expected: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self.steps: tuple[tuple[str, Callable[[], str | None]], ...] = (
            ("open", self._open),
            ("identity", partial(self._over_link, self._identity)),
            ("registers", partial(self._over_link, self._registers)),
            ("ping", partial(self._over_link, self._ping)),
            ("join", self._join),
            ("counters", self._counters),
            ("line", partial(self._over_link, self._line)),
        )

    @property
    def _opened(self) -> Device:
        assert self._device is not None
        return self._device

    def _over_link(self, step: Callable[[LinkedDevice], str]) -> str | None:
        """Take a step that only a device behind a link has."""
        return step(self._device) if isinstance(self._device, LinkedDevice) else None

    def _open(self) -> str:
        began = time.monotonic()
        self._device = self._opener()
        manifest = self._device.manifest
        require_pairs(manifest)
        text = f"{manifest.storage.cores} cores, {manifest.capacity} tuples a side"
        if isinstance(self._device, LinkedDevice):
            greeting = self._device.greeting
            text += (
                f"; answered within {1000 * (time.monotonic() - began):.0f} ms: link version "
                f"{greeting.version}, {greeting.receive_slots} frames in, {greeting.send_slots} out"
            )
        return text

    def _identity(self, device: LinkedDevice) -> str:
        words = [device.request(MANIFEST_HASH + 4 * n) for n in range(8)]
        told = b"".join(word.data.to_bytes(4, "little") for word in words).hex()
        if any(word.refused for word in words) or told != device.manifest.hash:
            raise StepFailedError(
                f"the registers say that the manifest's hash is {told}, and the bundle says "
                f"{device.manifest.hash}"
            )
        version = device.request(VERSION).data
        return f"manifest {told[:12]}, registers {version >> 16}.{version & 0xFFFF}"

    def _registers(self, device: LinkedDevice) -> str:
        before = device.request(INTERRUPT_ENABLE).data
        for value in (0, ENABLE_MARK, ENABLE_ERROR, ENABLE_MARK | ENABLE_ERROR, before):
            device.request(INTERRUPT_ENABLE, value)
            found = device.request(INTERRUPT_ENABLE)
            if found.refused or found.data != value:
                raise StepFailedError(
                    f"{value} was written to INTERRUPT_ENABLE, and {found.data} was read"
                )
        if not device.request(NO_SUCH_REGISTER).refused:
            raise StepFailedError(
                f"address {NO_SUCH_REGISTER:#x} has no register, and has answered"
            )
        return "values are kept, and an address without a register is refused"

    def _ping(self, device: LinkedDevice) -> str:
        """Write random bytes with no byte enabled: they pass the line, and change nothing."""
        values = list(range(4 * PINGS))
        random.Random(self._seed).shuffle(values)
        before, times = device.request(INTERRUPT_ENABLE).data, []
        for n in range(PINGS):
            number = int.from_bytes(bytes(values[4 * n : 4 * n + 4]), "little")
            began = time.monotonic()
            answered = device.request(INTERRUPT_ENABLE, number, strobe=0)
            times.append(time.monotonic() - began)
            if answered.refused:
                raise StepFailedError(f"request {n} of {PINGS} was refused")
        after = device.request(INTERRUPT_ENABLE).data
        if after != before:
            raise StepFailedError(f"INTERRUPT_ENABLE was {before}, and is {after}: a byte was kept")
        times.sort()
        least, middle, most = (1000 * times[n] for n in (0, len(times) // 2, -1))
        return (
            f"{PINGS} requests with every byte once, round trip {least:.1f} to {most:.1f} ms, "
            f"median {middle:.1f} ms"
        )

    def _join(self) -> str:
        device = self._opened
        asked = small_join(device.manifest, tuples=self._tuples, seed=self._seed)
        self._before = device.counters()
        began = time.monotonic()
        found = answer(device, asked.words, asked.marks, seconds=SECONDS)
        seconds = time.monotonic() - began
        unlike = difference(device.manifest, found, asked.results)
        if unlike:
            raise StepFailedError(unlike)
        self._expected = dict(zip(("tuples_r", "tuples_s"), asked.tuples, strict=True))
        return (
            f"{self._tuples} tuples, {len(asked.results)} results, equal to the reference join's; "
            f"{seconds:.2f} s"
        )

    def _counters(self) -> str:
        after = self._opened.counters()
        for name, wanted in self._expected.items():
            counted = after[name] - self._before[name]
            if counted != wanted:
                raise StepFailedError(f"{name} has counted {counted} of {wanted} tuples")
        return ", ".join(f"{name} {after[name] - self._before[name]}" for name in self._expected)

    def _line(self, device: LinkedDevice) -> str:
        link = device.link_counters()
        text = (
            f"{link.bytes_in} bytes in, {link.bytes_out} out, {link.garbled} pieces garbled, "
            f"{link.repeated} of {link.frames_out} frames repeated, {link.timeouts} timeouts"
        )
        if link.garbled > BAD_LINE * (link.frames_in + link.frames_out + PINGS):
            raise StepFailedError(text)
        return text
