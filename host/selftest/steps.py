# SPDX-License-Identifier: Apache-2.0
"""The steps of a self test, in the order in which a fault shows itself best."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
import random
import time

from host.device import Device
from host.device.linked import LinkedDevice
from host.device.shell_registers import (
    ENABLE_ERROR,
    ENABLE_MARK,
    INTERRUPT_ENABLE,
    MANIFEST_HASH,
    VERSION,
)
from host.errors import JoinError, LinkMismatchError, LinkSilentError, UsageError
from host.hardware.capacity import require_pairs
from host.installation import command
from host.selftest.comparison import answer, difference, small_join
from host.selftest.finding import Finding, Outcome, StepFailedError

__all__ = ["HINTS", "NO_SUCH_REGISTER", "self_test"]

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
    "open: another": "The board is alive, and the line is good: only the bitstream and the bundle "
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
    if isinstance(error, LinkSilentError) and not error.reason:
        return "open: garbled" if error.garbled else "open: silent"
    return "open: another" if isinstance(error, LinkMismatchError) else name


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
            ("identity", self._identity),
            ("registers", self._registers),
            ("ping", self._ping),
            ("join", self._join),
            ("counters", self._counters),
            ("line", self._line),
        )

    @property
    def _opened(self) -> Device:
        assert self._device is not None
        return self._device

    @property
    def _linked(self) -> LinkedDevice | None:
        return self._device if isinstance(self._device, LinkedDevice) else None

    def _open(self) -> str:
        began = time.monotonic()
        self._device = self._opener()
        manifest = self._device.manifest
        require_pairs(manifest)
        text = f"{manifest.storage.cores} cores, {manifest.capacity} tuples a side"
        if self._linked is not None:
            greeting = self._linked.greeting
            text += (
                f"; answered within {1000 * (time.monotonic() - began):.0f} ms: link version "
                f"{greeting.version}, {greeting.receive_slots} frames in, {greeting.send_slots} out"
            )
        return text

    def _identity(self) -> str | None:
        device = self._linked
        if device is None:
            return None
        words = [device.request(MANIFEST_HASH + 4 * n) for n in range(8)]
        told = b"".join(word.data.to_bytes(4, "little") for word in words).hex()
        if any(word.refused for word in words) or told != device.manifest.hash:
            raise StepFailedError(
                f"the registers say that the manifest's hash is {told}, and the bundle says "
                f"{device.manifest.hash}"
            )
        version = device.request(VERSION).data
        return f"manifest {told[:12]}, registers {version >> 16}.{version & 0xFFFF}"

    def _registers(self) -> str | None:
        device = self._linked
        if device is None:
            return None
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

    def _ping(self) -> str | None:
        """Write random bytes with no byte enabled: they pass the line, and change nothing."""
        device = self._linked
        if device is None:
            return None
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

    def _line(self) -> str | None:
        device = self._linked
        if device is None:
            return None
        link = device.link_counters()
        text = (
            f"{link.bytes_in} bytes in, {link.bytes_out} out, {link.garbled} pieces garbled, "
            f"{link.repeated} of {link.frames_out} frames repeated, {link.timeouts} timeouts"
        )
        if link.garbled > BAD_LINE * (link.frames_in + link.frames_out + PINGS):
            raise StepFailedError(text)
        return text
