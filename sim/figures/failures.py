# SPDX-License-Identifier: Apache-2.0
"""The figures of failures: whether exactly the listed pairs are missing after a core has failed."""

from host.errors import MissingToolError
from sim.failures.flip_trials import FLIP_SHAPES, run_flip
from sim.failures.trials import SHAPES, run_trial
from sim.soak.bundles import faulty, flippable

from .registry import NotMeasured, Result, figure

__all__ = []

TRIALS = 1_000
FLIPS = 3_000
#: Seed of the first trial; every trial has the next one.
SEED = 1


@figure("failure.lost_pairs_exact", unit="wrong answers", goal="<= 0")
def failure_lost_pairs_exact(report):
    """Joins whose answer was not the reference join without exactly what they list as missing."""
    wrong, noticed, missing = [], 0, 0
    try:
        bundles = [faulty(parameters, report) for parameters in SHAPES.values()]
    except MissingToolError as error:
        raise NotMeasured(str(error)) from error
    for number in range(TRIALS):
        trial = run_trial(bundles[number % len(bundles)], SEED + number)
        noticed, missing = noticed + trial.failed, missing + trial.missing
        if not trial.right:
            wrong.append(trial.text)
        if number % 100 == 99:
            report(f"{number + 1} failures, {len(wrong)} wrong answers")
    note = (
        f"{TRIALS:,} failures from seed {SEED} on, {noticed:,} of them before the last answer; "
        f"{missing:,} pairs missing, all of them listed: {'no' if wrong else 'yes'}"
    )
    return Result(len(wrong), notes=(note, *wrong[:5]))


@figure("failure.silent_flips", unit="wrong answers", goal="<= 0")
def failure_silent_flips(report):
    """Joins with a flipped bit whose answer was not the reference join without what they list."""
    wrong, told = [], 0
    try:
        bundles = [flippable(parameters, report) for parameters in FLIP_SHAPES.values()]
    except MissingToolError as error:
        raise NotMeasured(str(error)) from error
    for number in range(FLIPS):
        trial = run_flip(bundles[number % len(bundles)], SEED + number)
        told += trial.failed
        if not trial.right:
            wrong.append(trial.text)
        if number % 250 == 249:
            report(f"{number + 1} flips, {told} told, {len(wrong)} wrong answers")
    harmless = FLIPS - told - len(wrong)
    note = (
        f"{FLIPS:,} flipped bits from seed {SEED} on: {told:,} told with core and side, "
        f"{harmless:,} harmless, in rows that were not read before they were written again"
    )
    return Result(len(wrong), notes=(note, *wrong[:5]))
