# SPDX-License-Identifier: Apache-2.0
"""What an execution does about a core that fails: end, go on without it, or answer again."""

from host.accelerator.delivery import Delivery
from host.accelerator.params import AcceleratorJoinParams
from host.cores.failed_cores import NewTurns, has_gates, note_failed
from host.device import Device
from host.errors import CoreFailureError
from host.exchange.staging import Staging
from host.failures.core_failures import CoreFailures
from host.failures.failure_record import FailureRecord, cause_of
from host.failures.replay import Replay, Restart
from host.query.on_failure import OnFailure
from host.results.decoder import ResultDecoder
from host.results.restartable_decoder import RestartableDecoder
from host.runtime import Columns

__all__ = ["FailureResponse"]


class FailureResponse:
    """Responds to failed cores as ``params.on_failure`` says.

    Parameters
    ----------
    params : AcceleratorJoinParams
        The execution.
    staging : Staging
        The words that wait.
    decoder : ResultDecoder
        The decoder.

    Attributes
    ----------
    replay : Replay or None
        What answers again, if that is the response.
    """

    def __init__(
        self, params: AcceleratorJoinParams, staging: Staging, decoder: ResultDecoder
    ) -> None:
        device, window = params.device, params.plan.window
        self._device: Device = device
        self._report: CoreFailures | None = None
        self.replay: Replay | None = None
        if not has_gates(device.manifest):
            return
        if params.on_failure is OnFailure.REPORT:
            self._report = CoreFailures(device, window, staging, decoder)
        elif params.on_failure is OnFailure.REPLAY:
            self.replay = Replay(device, window, staging)

    @property
    def record(self) -> FailureRecord | None:
        """What has failed; None if a failure ends the join."""
        policy = self._report or self.replay
        return None if policy is None else policy.record

    @property
    def marks(self) -> int:
        """Number of marks that answer words inserted after a failure."""
        return 0 if self._report is None else self._report.marks

    def take_turns(self) -> NewTurns | None:
        """Return which cores take turns since the last call, if others do than before."""
        policy = self._report or self.replay
        return None if policy is None else policy.take_turns()

    def limit(self, complete: int) -> int:
        """Return how many first arrivals can be handed on, of those whose results have come."""
        return complete if self._report is None else self._report.limit(complete)

    def see(
        self,
        decoder: ResultDecoder,
        delivery: Delivery,
        parts: list[Columns],
        cycles: int,
        *,
        flushed: bool,
    ) -> tuple[list[Columns], Restart | None]:
        """Take what the decoder was told of cores in its last batch of results.

        Parameters
        ----------
        decoder : ResultDecoder
            Decoder of that batch.
        delivery : Delivery
            Pairs that wait in it, and count as missing or come again, are dropped.
        parts : list of Columns
            Pairs of the batch.
        cycles : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Returns
        -------
        parts : list of Columns
            The pairs that do not count as missing.
        restart : Restart or None
            How the execution goes on, if it must answer again.

        Raises
        ------
        CoreFailureError
            If a core has failed, and a failure ends the join.
        """
        if self._report is not None:
            if self._report.see(cycles, flushed=flushed):
                delivery.sift(self._report.sift)
            return [self._report.sift(pairs) for pairs in parts], None
        if self.replay is not None:
            assert isinstance(decoder, RestartableDecoder)
            restart = self.replay.see(decoder, cycles, flushed=flushed)
            if restart is None:
                return parts, None
            delivery.sift(restart.keep)
            return [restart.keep(pairs) for pairs in parts], restart
        self._require_none(decoder)
        return parts, None

    def _require_none(self, decoder: ResultDecoder) -> None:
        """Raise an error if a core has failed."""
        cores = decoder.take_failures().cores
        if not cores:
            return
        core = min(cores)
        note_failed(self._device, core)
        cause = f"It read {cause_of(cores[core])}. " if cores[core] else ""
        raise CoreFailureError(
            self._device.uri,
            core,
            f"{cause}Run the join again, which leaves the core out, or let it go on after a "
            "failure by on_failure='report' or 'replay'.",
        )
