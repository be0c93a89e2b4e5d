# SPDX-License-Identifier: Apache-2.0
"""The figures of failures: whether exactly the listed pairs are missing after a core has failed."""

from host.errors import MissingToolError
from sim.failures.bundles import faulty, flippable
from sim.failures.flip_trials import FLIP_SHAPES, run_flip
from sim.failures.trials import SHAPES, run_trial

from .registry import NotMeasured, Result, figure

__all__ = []

TRIALS = 1_000
FLIPS = 3_000
#: Seed of the first trial; every trial has the next one.
SEED = 1


@figure("failure.lost_pairs_exact", unit="wrong answers", goal="<= 0")
def failure_lost_pairs_exact(report):
    """Joins whose answer was not the reference join without exactly what they list as missing."""
    trials = [*repeated(TRIALS, run_trial, SHAPES, faulty, report)]
    noticed, missing = (sum(getattr(trial, n) for trial in trials) for n in ("failed", "missing"))
    wrong = [trial.text for trial in trials if not trial.right]
    note = (
        f"{TRIALS:,} failures from seed {SEED} on, {noticed:,} of them before the last answer; "
        f"{missing:,} pairs missing, all of them listed: {'no' if wrong else 'yes'}"
    )
    return Result(len(wrong), notes=(note, *wrong[:5]))


@figure("failure.silent_flips", unit="wrong answers", goal="<= 0")
def failure_silent_flips(report):
    """Joins with a flipped bit whose answer was not the reference join without what they list."""
    trials = [*repeated(FLIPS, run_flip, FLIP_SHAPES, flippable, report)]
    wrong = [trial.text for trial in trials if not trial.right]
    told = sum(trial.failed for trial in trials)
    harmless = sum(trial.right and not trial.failed for trial in trials)
    note = (
        f"{FLIPS:,} flipped bits from seed {SEED} on: {told:,} told with core and side, "
        f"{harmless:,} harmless, in rows that were not read before they were written again"
    )
    return Result(len(wrong), notes=(note, *wrong[:5]))


def repeated(count, run, shapes, prepare, report):
    """Yield trials with one seed after the other, on accelerators of these shapes in turn.

    Parameters
    ----------
    count : int
        Number of trials.
    run : callable
        Called with a bundle and a seed; returns a :class:`sim.failures.trials.Trial`.
    shapes : dict
        Name to the parameters of an accelerator.
    prepare : callable
        Called with parameters and ``report``; returns the bundle of a shape.
    report : callable
        Receives lines about the progress.

    Raises
    ------
    NotMeasured
        If a tool is missing that the bundles are made with.
    """
    try:
        bundles = [prepare(parameters, report) for parameters in shapes.values()]
    except MissingToolError as error:
        raise NotMeasured(str(error)) from error
    failed = wrong = 0
    for number in range(count):
        trial = run(bundles[number % len(bundles)], SEED + number)
        failed, wrong = failed + trial.failed, wrong + (not trial.right)
        if number % 100 == 99:
            report(f"{number + 1} trials, {failed} failures told, {wrong} wrong answers")
        yield trial
