# SPDX-License-Identifier: Apache-2.0
"""Tuples with many keys: how many words, or pairs of words, an accelerator counts in a cycle."""

from bench.experiments.sweep import sweep
from bench.experiments.texts import TextPoint

from .registry import Result, figure

__all__ = ["counted"]


def counted(kind, report, *, more=()):
    """Return the result of counting words or pairs of texts on one core, and on ``more``."""
    points = [TextPoint(kind, cores) for cores in (1, *more)]
    found = sweep(points, report)
    one = found[points[0]]
    per_text = one["keys"] / one["texts"]
    return Result(
        one["keys"] / one["cycles"],
        notes=(
            f"{one['texts']} texts of {one['words']} words, each sent once",
            f"{per_text:.1f} keys per text: so many times a map before the aggregate would send it",
            f"{1000 * one['texts'] / one['cycles']:.1f} texts per 1,000 cycles",
            *(
                f"with {point.cores} cores {found[point]['keys'] / found[point]['cycles']:.2f}"
                for point in points[1:]
            ),
        ),
        details={f"cores_{point.cores}": found[point] for point in points},
    )


@figure("aggregate.wordcount_words_per_cycle", unit="words/cycle", goal=">= 0.95")
def words_per_cycle(report):
    """Different words of texts that one core counts in a cycle: STRETCH's Operator 14.

    Texts of 4 to 16 words with the frequencies of English, 2^14 words, windows of two panes of
    2,500 texts. All counts are checked. Cycles are counted from the second pane on.
    """
    return counted("wordcount", report, more=[4])


@figure("aggregate.paircount_h_pairs_per_cycle", unit="pairs/cycle", goal=">= 0.95")
def pairs_per_cycle(report):
    """Different pairs of words of texts that one core counts in a cycle: paircount H.

    As for words, but of the 128 most frequent ones, and all pairs of a text are keys: up to 120.
    """
    return counted("paircount H", report)
