# SPDX-License-Identifier: Apache-2.0
"""The software device: an accelerator's results, computed with the reference join."""

import atexit
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from host.devices.contract import Device, Exchange, Stamps, check_words
from host.devices.model import NEVER, AcceleratorModel, GroupEmission, Pairs, Told, with_stars
from host.errors import (
    AcceleratorLimitError,
    DeviceError,
    JoinError,
    KeyRangeError,
    ManifestError,
    UsageError,
)
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import REDUCTIONS, MatchCodec, codec_of
from host.protocol.manifest import JoinAggregateManifest, Manifest, load_join_manifest
from host.protocol.punctuation import Closings
from host.reference.arrivals import Side, UInt64s
from host.reference.predicate import Keys, load_predicate

__all__ = [
    "MatchesModel",
    "REFUSALS",
    "SOFTWARE_MANIFEST",
    "SoftwareDevice",
    "on_device_or_software",
    "reduced_pairs",
]

# A model of a join aggregate without timing: batches of input in, reductions of matches out.

Int64s = npt.NDArray[np.int64]


def reduced_pairs(
    probe: Int64s, value: Int64s, probes: int, *, least: int, most: int
) -> dict[str, Int64s]:
    """Return count, total, least and most of the values that each of some probes matches.

    Parameters
    ----------
    probe, value : array of int64
        For each pair, the number of its probe and the value that it matches.
    probes : int
        Number of probes.
    least, most : int
        What ``least`` and ``most`` of no match are.
    """
    reduced = {
        "count": np.bincount(probe, minlength=probes).astype(np.int64),
        "total": np.zeros(probes, np.int64),
        "least": np.full(probes, least),
        "most": np.full(probes, most),
    }
    np.add.at(reduced["total"], probe, value)
    np.minimum.at(reduced["least"], probe, value)
    np.maximum.at(reduced["most"], probe, value)
    return reduced


class MatchEmission(GroupEmission):
    """Reduces the matches of R's probes, and turns them into result words.

    Parameters
    ----------
    manifest : JoinAggregateManifest
        Manifest with the layout of the words and the storage rule.
    """

    def __init__(self, manifest: JoinAggregateManifest) -> None:
        super().__init__(manifest)
        self._codec = MatchCodec(manifest)
        self._longest = 1 << manifest.probe_bits
        half = 1 << manifest.value_bits - 1
        self._neutral = {"least": half - 1, "most": -half}
        self._held = {name: np.zeros(0, np.int64) for name in REDUCTIONS}
        self._number = 0  # of the next probe that leaves, since the last star

    def add(self, side: Side, probes: int, pairs: Pairs) -> None:
        """Reduce the pairs of the next ``probes`` probes of R; those of S find none."""
        if side is Side.S:
            return
        value = np.zeros(0, np.int64) if pairs.value is None else pairs.value
        reduced = reduced_pairs(pairs.probe, value, probes, **self._neutral)
        self._held = {name: np.concatenate([self._held[name], reduced[name]]) for name in reduced}

    def mark(self, overflowed: Mapping[Side, bool], told: Told) -> UInt64s:
        """Return a mark as a result word."""
        flags = overflowed[Side.S] << Side.S
        return self._codec.pack_punctuation(self._codec.mark, flags, told.disorder, told.illegal)

    def emit(
        self, closings: Closings, overflow: npt.NDArray[np.bool_], told: Told
    ) -> tuple[UInt64s, int]:
        """See :meth:`~host.devices.model.GroupEmission.emit`; only groups of R have results."""
        groups = np.flatnonzero(closings.side == Side.R)
        counts, has_star = closings.probes[groups], closings.star[groups]
        ends = np.cumsum(counts)
        values = int(counts.sum())
        leaving = {name: column[:values] for name, column in self._held.items()}
        self._held = {name: column[values:] for name, column in self._held.items()}
        # Where the numbers of probes began to count from zero, before each group and behind all.
        zeros = np.where(has_star, ends, -self._number)
        zeros = np.maximum.accumulate(np.concatenate([[-self._number], zeros]))
        numbers = (np.arange(values) - np.repeat(zeros[:-1], counts)) % self._longest
        self._number = values - int(zeros[-1])
        flags = overflow[groups[has_star]].astype(np.int64) << Side.S
        stars = self._codec.pack_punctuation(self._codec.star, flags, told.disorder, told.illegal)
        words = self._codec.pack_values(numbers, leaving)
        return with_stars(words, stars, ends[has_star]), values


class MatchesModel(AcceleratorModel):
    """State of a join aggregate between two input words, as that of an ``AcceleratorModel``.

    Parameters
    ----------
    manifest : JoinAggregateManifest
        Manifest of the accelerator.
    custom : function, optional
        Predicate of a custom comparator.
    """

    manifest: JoinAggregateManifest

    def _make_emission(self) -> MatchEmission:
        return MatchEmission(self.manifest)

    def _join(self, side: Side, keys: Keys, time: UInt64s, before: Int64s) -> Pairs:
        """Return the pairs that probes of R find, with their values; those of S do not probe."""
        if side is Side.S:
            return Pairs.empty()
        pairs = super()._join(side, keys, time, before)
        if not len(pairs.stored):
            return pairs
        stored = self._histories[Side.S]
        values = np.asarray(stored.keys["value"], np.int64)
        return pairs._replace(value=values[pairs.stored - stored.base])

    def _overflow(self, side: Side, first: int, mine: Int64s, time: UInt64s) -> int:
        """Note which cores overflow; tuples of R are not stored."""
        return NEVER if side is Side.R else super()._overflow(side, first, mine, time)


# The software device: it computes an accelerator's results with the reference join.

Result = TypeVar("Result")

REFUSALS = (AcceleratorLimitError, KeyRangeError)
"""What a device raises for a query or for rows that are too large for it."""

# If the package is in an archive, the manifest is a temporary file until the process ends.
_unpacked = ExitStack()
atexit.register(_unpacked.close)
#: Manifest of the accelerator that ``software:`` stands for: one core without a practical limit.
SOFTWARE_MANIFEST: Path = _unpacked.enter_context(as_file(files("host.devices") / "software.json"))

#: Least number of tuples joined at once, used after a control word, and the largest number.
FEWEST, MOST = 1 << 10, 1 << 16
#: Number of results of a batch above which the next batch of tuples is smaller.
MANY = 1 << 18


def own_predicate(manifest: Manifest) -> Callable[[Any, Any], Any] | None:
    """Return the predicate of an accelerator that has one of its own, as a function of two keys.

    Raises
    ------
    UsageError
        If it is a function that cannot be imported.
    """
    if manifest.where is not None:
        from host.expressions import Expression, evaluate
        from host.query.conditions import Condition

        expression = Expression(Condition(manifest.where).text)

        def predicate(r: Any, s: Any) -> Any:
            rows = {"l": r, "r": s}
            values = {name: getattr(rows[name[0]], name[2:]) for name in expression.names}
            return np.not_equal(evaluate(expression, values), 0)

        return predicate
    return None if manifest.predicate is None else load_predicate(manifest.predicate)


class SoftwareDevice(Device):
    """Computes the results of a bundle's hardware with the reference join.

    The results and their order equal those of the hardware while the period of the stars is at most
    ``probes``. With a longer period, the pairs between two stars may come in another order. After
    an overflow or disorder, stars and marks report the error as in hardware, and the pairs, which
    are then unreliable, can differ. The device has no clock: ``cycles`` and all stamps are zero.

    Parameters
    ----------
    bundle : path-like or Manifest
        Folder of the bundle, or path of the manifest file, or the manifest itself.
    uri : str, optional
        URI of the device in messages.
    """

    def __init__(self, bundle: str | Path | Manifest, *, uri: str | None = None) -> None:
        if isinstance(bundle, Manifest):
            self.manifest, place = bundle, bundle.path or ""
        else:
            self.manifest, place = load_join_manifest(bundle), bundle
        self.uri = f"software:{place}" if uri is None else uri
        if self.manifest.chain is not None:
            raise ManifestError(
                place,
                f"is a {self.manifest.chain.architecture} join, which has no model in software; "
                f"open it by `sim:`, or another bundle",
            )
        custom = own_predicate(self.manifest)
        self._codec = codec_of(self.manifest)
        is_aggregate = isinstance(self.manifest, JoinAggregateManifest)
        self._model = (MatchesModel if is_aggregate else AcceleratorModel)(self.manifest, custom)
        self._waiting = np.zeros((0, self.manifest.result_word.columns), np.uint64)
        self._batch = FEWEST
        self._closed = False
        self._joined: Counter[str] = Counter()

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """Offer ``words`` and collect ``results``; see :meth:`Device.exchange`."""
        if self._closed:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        check_words(self.manifest, words, results)
        kinds = unpack_field(words, self.manifest.input_word["kind"])
        legal = self._codec.legal(words)
        alone = np.flatnonzero((kinds == self.manifest.input_kinds["CONTROL"]) | ~legal)
        accepted, produced = 0, 0
        while True:
            delivered, marked = self._deliver(results[produced:])
            produced += delivered
            if marked or produced == len(results) or accepted == len(words):
                break
            at = int(np.searchsorted(alone, accepted))
            until = int(alone[at]) if at < len(alone) else len(words)
            if until == accepted:
                self._batch = FEWEST
                if legal[accepted]:
                    control = self._codec.unpack_control(words[accepted])
                    self._waiting = self._codec.join_results(self._model.control(*control))
                else:
                    self._model.drop_illegal()
                accepted += 1
            else:
                until = min(until, accepted + self._batch)
                self._waiting = self._tuples(words[accepted:until])
                accepted = until
        if stamps is not None:
            stamps.accepted[:accepted] = 0
            stamps.produced[:produced] = 0
        return Exchange(accepted, produced, 0)

    def fail(self, core: int) -> None:
        """Let a core fail, as :meth:`host.devices.model.AcceleratorModel.fail` does."""
        self._model.fail(core)

    def counters(self) -> dict[str, int]:
        """Return the counters; counters of cycles are zero."""
        if self._closed:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        known = self._model.counters
        return {
            counter.name: known.get(counter.name, 0) + self._joined[counter.name]
            for counter in self.manifest.counters
        }

    def count(self, increases: Mapping[str, int]) -> None:
        """Add to the counters what the software engine has done for a join on this device."""
        for name, increase in increases.items():
            self._joined[name] += increase

    def close(self) -> None:
        """Close the device and drop all waiting results."""
        self._closed = True
        self._waiting = self._waiting[:0]

    def _tuples(self, words: UInt64s) -> UInt64s:
        """Join tuples, and adapt the size of the next batch to the number of results."""
        answers = self._model.tuples(*self._codec.unpack_tuples(words))
        if len(answers) > MANY:
            self._batch = max(1, self._batch // 4)
        elif len(answers) < MANY // 4:
            self._batch = min(MOST, self._batch * 2)
        return self._codec.join_results(answers)

    def _deliver(self, results: UInt64s) -> tuple[int, bool]:
        """Deliver waiting results; return their number, and whether the last one is a mark."""
        # Only the last waiting word can be a mark, because each control word is executed alone.
        count = min(len(results), len(self._waiting))
        results[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        kind = unpack_field(results[count - 1 : count], self.manifest.result_word["kind"])
        return count, count > 0 and int(kind[0]) == self._codec.mark


def on_device_or_software(
    run: Callable[[Device], Result],
    device: Device,
    software: Callable[[], Device] | None,
    tell: Callable[[JoinError], None],
) -> Result:
    """Return what ``run`` returns of a device, or of software if the device refuses its rows.

    This is what happens wherever a device cannot hold the times, the values or the window of rows
    that are at hand: all of them are given to ``run`` once more.

    Parameters
    ----------
    run : callable
        Does the work with a device; what it has done when it raises must not count.
    device : Device
        The device.
    software : callable or None
        Opens a software device; None: a refusal is an error.
    tell : callable
        Told the refusal, before ``run`` gets software.

    Raises
    ------
    AcceleratorLimitError, KeyRangeError
        If the device refuses the rows, and there is no software, or it does not take them either.
    """
    try:
        return run(device)
    except REFUSALS as error:
        if software is None:
            raise
        refusal = error
    tell(refusal)
    try:
        return run(software())
    except UsageError:  # the device's error is the one that helps
        raise refusal from None
