# SPDX-License-Identifier: Apache-2.0
"""The rules that every epoch of a join keeps, and the errors of those that do not."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from host.cores.failed_cores import NewTurns, failed_cores
from host.device import Device
from host.errors import EpochCapacityError, EpochCoresError, EpochOrderError
from host.hardware.fullest_core import FullestCore
from host.hardware.storage import StorageRule
from host.query.epochs import Epoch
from host.reference.side import Side
from host.reference.window import CountWindow, Window

__all__ = ["EpochRules"]


class EpochRules:
    """Numbers the epochs of one join, and refuses those that cannot take effect.

    Parameters
    ----------
    device : Device
        The accelerator. Its cores that have failed take no turns, whichever epoch names them.
    window : CountWindow or TimeWindow
        Window of either side.
    """

    def __init__(self, device: Device, window: Window) -> None:
        self._device = device
        self._storage = device.manifest.storage
        self._window = window
        self._failed = failed_cores(device)
        self._last = 0
        self._rule = StorageRule.of(device.manifest)
        self._fullest: dict[Side, FullestCore] = {}
        self._weigh_anew(self._live(range(self._storage.cores)), dict.fromkeys(Side, 0))

    def admit(self, epoch: Epoch, place: int | None = None) -> Epoch:
        """Return an epoch that has been decided, with its number and the cores that can store.

        Parameters
        ----------
        epoch : Epoch
            The epoch.
        place : int, optional
            Tuples that have been sent, for messages.

        Raises
        ------
        EpochOrderError
            If its number is not above the last one.
        EpochCoresError
            If it has no core, an unknown one, or one twice.
        EpochCapacityError
            If an even share of a count-based window does not fit its cores.
        """
        number = self._last + 1 if epoch.number is None else epoch.number
        if number <= self._last:
            raise EpochOrderError(number, self._last, place)
        cores, most = tuple(epoch.cores), self._storage.cores
        known = all(0 <= core < most for core in cores)
        live = self._live(cores)
        if not known or not live or len(set(cores)) < len(cores):
            raise EpochCoresError(number, cores, most, place)
        if isinstance(self._window, CountWindow):
            share = -(-int(self._window.size) // len(live))
            self._require_room(number, live, share, place)
        self._last = number
        return Epoch(live, epoch.after, epoch.beyond, number)

    def begin(self, epoch: Epoch, counts: dict[Side, int]) -> Epoch:
        """Weigh an epoch at the place where it is to take effect; return it as it does.

        Cores that have failed since it was admitted are left out.

        Parameters
        ----------
        epoch : Epoch
            As returned by :meth:`admit`.
        counts : dict of Side to int
            Tuples of each side before it.

        Raises
        ------
        EpochCoresError
            If all of its cores have failed.
        EpochCapacityError
            If a core would not have room for what a count-based window has of this epoch and of
            those before it.
        """
        assert epoch.number is not None
        place = sum(counts.values())
        live = self._live(epoch.cores)
        if not live:
            raise EpochCoresError(epoch.number, epoch.cores, self._storage.cores, place)
        for side, fullest in self._fullest.items():
            fullest.begin(counts[side], live)
            needed = fullest.needed(counts[side])
            self._require_room(epoch.number, live, needed, place)
        return replace(epoch, cores=live)

    def go_on(self, turns: NewTurns, counts: dict[Side, int]) -> None:
        """Take note of a failure: the cores of ``turns`` store from here on.

        Parameters
        ----------
        turns : NewTurns
            All cores but those that have failed, or those of them that the epoch in force has.
        counts : dict of Side to int
            Tuples of each side before this place.
        """
        self._failed = failed_cores(self._device)
        if turns.first is not None:
            self._weigh_anew(turns.live, turns.first)
            return
        for side, fullest in self._fullest.items():
            fullest.begin(counts[side], turns.live)

    def _weigh_anew(self, live: tuple[int, ...], first: dict[Side, int]) -> None:
        """Weigh windows whose tuples from ``first`` on, by side, are in the cores of ``live``."""
        if not isinstance(self._window, CountWindow):
            return
        for side in Side:
            fullest = FullestCore(self._rule, int(self._window.size), self._storage.sub_window)
            if first[side] or len(live) < self._storage.cores:
                fullest.begin(first[side], live)
            self._fullest[side] = fullest

    def _live(self, cores: Iterable[int]) -> tuple[int, ...]:
        return tuple(core for core in cores if core not in self._failed)

    def _require_room(
        self, number: int, cores: Sequence[int], needed: int, place: int | None
    ) -> None:
        assert isinstance(self._window, CountWindow)
        room = self._storage.sub_window
        if needed > room:
            raise EpochCapacityError(number, int(self._window.size), cores, room, needed, place)
