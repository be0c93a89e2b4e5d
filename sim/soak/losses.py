# SPDX-License-Identifier: Apache-2.0
"""What may be missing after a core has failed: ``docs/failures.md``.

Nobody but the accelerator knows the moment at which a core fails. So its own stars say which groups
lack pairs. All else is fixed: every star and mark, and the pairs of the other cores.
"""

from dataclasses import replace

import numpy as np

from .results import FAILED, FAILED_CORE, INNER, MARK, OVERFLOW, PAIR, STAR, identity

__all__ = ["after_failure"]

#: Bits of the number of a core.
EVERY = 0xFFFF


def own_group(results):
    """Return a number for the side of each result, and the stars of that side before it."""
    return identity(results.side, results.own_stars_before(), 0)


def told(results):
    """Tell of each result whether it is a star or mark that tells of a failed core."""
    return np.isin(results.kind, (STAR, MARK)) & (results.code >> FAILED & 1 != 0)


def complaint(results, core, final):
    """Return what is wrong with what stars and marks tell of failed cores, or None."""
    failed = told(results)
    if (results.code[failed] >> FAILED_CORE & EVERY != core).any():
        return f"another core than {core} is told to have failed"
    for side in (0, 1):
        flags = failed[(results.kind == STAR) & (results.side == side)]
        if final and (flags[1:] < flags[:-1]).any():
            return f"core {core} takes part again without a word"
    return None


def without_overflow(results):
    """Return results whose stars and marks tell of no overflow."""
    stop = np.isin(results.kind, (STAR, MARK))
    return replace(results, code=np.where(stop, results.code & ~(3 << OVERFLOW), results.code))


def after_failure(whole, least, actual, core):
    """Drop from answer and results what a failed core may leave out, so that both can be compared.

    Parameters
    ----------
    whole, least : sim.soak.model.Answer
        What comes if the core never fails, and if it is masked all the time.
    actual : Results
        What came.
    core : int
        The core that may have failed.

    Returns
    -------
    answer : Answer
        Pairs of the core are loose in groups that lack something. Stars of rounds are left out
        there, and so are overflows if there are others without the core.
    results : Results
    wrong : str or None
        What is wrong with what stars and marks tell of failed cores.
    """
    words = whole.control_words
    wrong = complaint(actual, core, not words.get("MASK", 0) and not words.get("UNMASK", 0))
    failed = told(actual)
    lost = own_group(actual)[failed & (actual.kind == STAR)]
    clean = replace(actual, code=np.where(failed, cleared(actual.code), actual.code))
    stays = ~(np.isin(own_group(clean), lost) & (clean.kind == INNER))
    clean = clean[stays]

    expected, loose = whole.results, whole.loose
    in_lost = np.isin(own_group(expected), lost)
    loose = loose | (in_lost & (expected.kind == PAIR) & (expected.core == core))
    stays = ~(in_lost & (expected.kind == INNER))
    expected, loose = expected[stays], loose[stays]
    if not np.array_equal(stops(whole.results), stops(least.results)):
        expected, clean = without_overflow(expected), without_overflow(clean)
    return replace(whole, results=expected, loose=loose), clean, wrong


def cleared(codes):
    """Return the codes of stars and marks as if no core had failed."""
    return codes & ~((1 << FAILED) | (EVERY << FAILED_CORE))


def stops(results):
    """Return the codes of the stars and marks."""
    return results.code[np.isin(results.kind, (STAR, MARK))]
