# SPDX-License-Identifier: Apache-2.0
"""Whether a join can have the epochs that are asked for."""

from host.accelerator.params import AcceleratorJoinParams
from host.cores.epoch_rules import EpochRules
from host.errors import UsageError
from host.query.epochs import ListedEpochs

__all__ = ["require_epochs"]


def require_epochs(params: AcceleratorJoinParams) -> None:
    """Raise an error if a join cannot have the epochs that are asked for.

    Raises
    ------
    UsageError
        If segments are asked for as well, or if an epoch begins beyond a value that the order
        column cannot hold.
    EpochError
        If a listed epoch cannot take effect.
    """
    if params.epochs == ():
        return
    if params.segments != ():
        raise UsageError(
            "A join has either epochs or segments, not both: an epoch is a segment; give epochs."
        )
    schedule = params.epoch_schedule
    if not isinstance(schedule, ListedEpochs):
        return
    rules = EpochRules(params.device, params.plan.window)
    for epoch in schedule.epochs:
        if epoch.beyond is not None:
            params.plan.times.ticks(epoch.beyond)
        rules.admit(epoch)
