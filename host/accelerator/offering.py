# SPDX-License-Identifier: Apache-2.0
"""What a device is offered in one execution: tuples, and the control words between them."""

from host.accelerator.answer import Answer
from host.accelerator.failure_response import FailureResponse
from host.accelerator.params import AcceleratorJoinParams
from host.accelerator.steering import Steering
from host.cores.epoch_changes import EpochChanges
from host.cores.epoch_rules import EpochRules
from host.cores.failed_cores import NewTurns, failed_cores
from host.cores.segment_changes import SegmentChanges
from host.cores.turns import segment_words
from host.encode.values import FieldValues
from host.errors import EpochError
from host.exchange.cell_choice import fitted_words
from host.exchange.staging import Staging
from host.hardware.storage_segments import SEGMENTS
from host.query.segments import Segment
from host.reference.side import Side
from host.results.completion import Completion
from host.tuples.intake import Arrived, Intake
from host.words import Blocks, WordCodec

__all__ = ["Offering"]


class Offering:
    """Stages the tuples of one execution, as far as they have arrived and are wanted.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    codec : WordCodec
        Layouts of the words.
    staging : Staging
        The words that wait; it holds those of the configuration.
    answer : Answer
        What decodes the results; its decoder is told what is staged.
    failures : FailureResponse
        What sends tuples again after a core has failed.
    steering : Steering
        What tells how much input is wanted, and which cores store.
    choice : int
        Choice of the hash seeds of an index.

    Attributes
    ----------
    changes : SegmentChanges or EpochChanges
        Changes of the cores that store.
    refused : EpochError or None
        Why the execution ends before its input does.
    flushed : bool
        Whether everything has been staged, and FLUSH behind it.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        codec: WordCodec,
        staging: Staging,
        answer: Answer,
        failures: FailureResponse,
        steering: Steering,
        choice: int,
    ) -> None:
        self._params, self._intake, self._completion = params, intake, completion
        self._codec, self._staging, self._answer = codec, staging, answer
        self._failures, self._steering, self._choice = failures, steering, choice
        self.changes = self._changes()
        self.refused: EpochError | None = None
        self.flushed = False
        self._fitted = False  # whether the cells of an index suit the first tuples

    def _changes(self) -> SegmentChanges | EpochChanges:
        """Return what tells where other cores store than those that have failed."""
        params, elastic = self._params, self._steering.elastic
        if params.epochs == () and elastic is None:
            return SegmentChanges(params.schedule, params.plan.window)
        rules = EpochRules(params.device, params.plan.window)
        schedule = elastic or params.epoch_schedule
        # A failure begins a segment at once, so a list of cores has to be free for it.
        lists = SEGMENTS - params.survives
        return EpochChanges(schedule, params.plan, self._intake.floor, rules, lists=lists)

    def take_input(self) -> bool:
        """Stage input until there is enough; return False if more input must arrive first.

        A device that takes words slowly leaves no room for more, and then no more are staged.
        """
        while self._steering.wants_input and self._has_room and not self.flushed:
            arrived = self._intake.take()
            if arrived is not None and arrived.count:
                self._stage_parts(arrived)
            elif arrived is not None:
                self._answer.deliver([])
                if self._answer.delivery.ready:
                    return True
            elif self._intake.at_end:
                self._end()
            else:
                return False
        return True

    @property
    def _has_room(self) -> bool:
        """Whether the next rows of either side fit beside the words that wait."""
        return self._staging.room >= len(Side) * self._intake.most_rows

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure: these cores store what is staged from now on."""
        self.changes.go_on(turns)
        self._steering.go_on(turns)

    def _end(self) -> None:
        """Stage the end of the input."""
        self._staging.append(self._codec.pack_control("FLUSH"), marks=1)
        self._answer.decoder.flush()
        self.flushed = True

    def _stage_parts(self, arrived: Arrived) -> None:
        """Stage tuples, and between them the words that change which cores store.

        At an epoch that is refused, the input ends. What comes before it is still answered.
        """
        if not self._fitted:
            self._fitted = True
            params = self._params
            fitted = fitted_words(params.device.manifest, params.plan, arrived, self._choice)
            if fitted is not None:
                self._staging.append(fitted)
        if self._steering.elastic is not None:
            self._steering.elastic.admit(arrived)
        try:
            for part in self.changes.cut(arrived):
                if isinstance(part, Segment):
                    self._change_turns(part)
                else:
                    self._stage(part)
        except EpochError as error:
            self.refused = error
            self._answer.delivery.is_cut = True
            self._end()

    def _stage(self, arrived: Arrived) -> None:
        """Write tuples into the words that the device will be offered."""
        sides = arrived.sides
        places = self._codec.places(
            {side: tuples.places for side, tuples in sides.items()}, arrived.count
        )
        words = self._staging.reserve(places.count)
        fields: dict[Side, dict[str, Blocks]] = {}
        for side, tuples in sides.items():
            batch = tuples.batch
            fields[side] = {f"key.{name}": values for name, values in batch.keys.items()}
            if self._params.plan.timed:
                fields[side]["timestamp"] = FieldValues(batch.times)
        begins = {side: tuples.begin for side, tuples in sides.items()}
        self._codec.scatter(words, places, fields, begins)
        self._staging.add(places.count)
        self._answer.decoder.stage(arrived)
        self._steering.stage(arrived)
        if self._failures.replay is not None:
            counts = {side: len(own.places) for side, own in sides.items()}
            self._failures.replay.log.append(words, counts)
        if self._completion is not None:
            self._completion.stage(arrived)
        self._intake.counters.staged_bytes += words.nbytes
        self._intake.counters.moved_words = self._staging.moved

    def _change_turns(self, segment: Segment) -> None:
        """Let other cores store the tuples that are staged from now on, but for failed ones."""
        manifest, window = self._params.device.manifest, self._params.plan.window
        failed = failed_cores(self._params.device)
        cores = tuple(core for core in segment.cores if core not in failed)
        self._staging.append(segment_words(manifest, cores, window))
        self._answer.decoder.begin_segment(cores)
        self._steering.begin(segment)
