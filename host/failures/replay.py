# SPDX-License-Identifier: Apache-2.0
"""Answer again what a failed core left unanswered, from the tuples of the window on."""

from typing import NamedTuple

import numpy as np

from host.cores.failed_cores import Exclusion, NewTurns, exclude, note_new
from host.device import Device
from host.exchange.staging import Staging
from host.failures.failure_record import CoreFailure, FailureRecord
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.reference.window import Window
from host.results.replay_log import ReplayLog
from host.results.restartable_decoder import RestartableDecoder
from host.runtime import Columns
from host.words import WordCodec

__all__ = ["Replay", "Restart"]


class Restart(NamedTuple):
    """How an execution goes on after a failure.

    Attributes
    ----------
    decoder : RestartableDecoder
        Decoder of all results after the mark of CLEAR.
    skip : int
        Marks that come first, up to that one.
    answered : dict of Side to int
        By side, the place of the first probe that is not answered yet. Pairs of later probes are
        dropped, because they come again.
    """

    decoder: RestartableDecoder
    skip: int
    answered: dict[Side, int]

    def keep(self, pairs: Columns) -> Columns:
        """Return the pairs of the probes that are answered."""
        sides = pairs["origin"] % 2
        first = np.where(sides == Side.R, self.answered[Side.R], self.answered[Side.S])
        return pairs.take(np.flatnonzero(pairs["probe"] < first))


class Replay:
    """Starts the accelerator anew without a core that has failed, so that nothing is missing.

    The failed core is masked, and CLEAR forgets everything. Then the tuples are sent again that
    probes can meet that are not answered yet, and these probes themselves. What a probe finds that
    was answered before is dropped. All results that come before the mark of CLEAR are dropped.

    Parameters
    ----------
    device : Device
        The device.
    window : CountWindow or TimeWindow
        Window of either side.
    staging : Staging
        The words that wait.

    Attributes
    ----------
    log : ReplayLog
        The tuples that may have to be sent again.
    record : FailureRecord
        What has failed.
    """

    def __init__(self, device: Device, window: Window, staging: Staging) -> None:
        self._device, self._window, self._staging = device, window, staging
        self._codec = WordCodec(device.manifest)
        self.log = ReplayLog(self._codec)
        self.record = FailureRecord()
        self._skip = 0
        self._new_turns: NewTurns | None = None

    def see(self, decoder: RestartableDecoder, cycle: int, *, flushed: bool) -> Restart | None:
        """Take what the decoder was told in its last batch of results.

        Parameters
        ----------
        decoder : RestartableDecoder
            The decoder of that batch.
        cycle : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Returns
        -------
        Restart or None
            How the execution goes on, if a core has failed.
        """
        told = decoder.take_failures()
        new = note_new(self._device, told.cores)
        if not new:
            self.log.forget({side: decoder.sent_from(side) for side in Side})
            return None
        answered = decoder.answered(told)
        again = self.log.again(decoder.needed(answered))
        cores = range(self._device.manifest.storage.cores)
        without = exclude(self._device, new, cores, self._window)
        restarted = decoder.restarted(again, answered, without.live)
        self._send(without, again.words)
        first = {side: restarted.sent_from(side) for side in Side}
        self._new_turns = NewTurns(tuple(without.live), first)
        if flushed:
            self._staging.append(self._codec.pack_control("FLUSH"), marks=1)
            restarted.flush()
        for core in new:
            replayed = sum(map(len, again.numbers.values()))
            self.record.failures.append(
                CoreFailure(core, cycle, replayed=replayed, parity=told.cores[core])
            )
        return Restart(
            restarted, self._skip, {side: place for side, (_, place) in answered.items()}
        )

    def take_turns(self) -> NewTurns | None:
        """Return which cores take turns since the last call, if others do than before."""
        turns, self._new_turns = self._new_turns, None
        return turns

    def _send(self, without: Exclusion, tuples: UInt64s) -> None:
        clear = self._codec.pack_control("CLEAR")
        self._staging.append(np.concatenate([without.masks, clear]), marks=1)
        self._skip = self._staging.outstanding
        self._staging.append(np.concatenate([without.segment, tuples]))
