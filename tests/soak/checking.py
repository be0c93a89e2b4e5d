# SPDX-License-Identifier: Apache-2.0
"""One program on one accelerator: does what comes out agree with the model?"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from .machine import Machine
from .model import model_of
from .results import (
    FAILED,
    FAILED_CORE,
    INNER,
    MARK,
    OVERFLOW,
    PAIR,
    STAR,
    describe,
    identity,
    read_results,
)
from .storage import is_lawful
from .words import WordLayout, parameters_of

__all__ = ["Checker", "Outcome", "after_failure", "difference"]

#: Results shown on either side of a difference.
SHOWN = 4
#: Bits of the number of a core.
EVERY = 0xFFFF


# Results beside those of the model, as far as their order is fixed.


def without_void(results, extra, void):
    """Leave out pairs of the probes in ``void``, and what goes with them in ``extra``."""
    if not len(void):
        return results, extra
    void, probes = np.sort(void), results.probes()
    keep = void[np.searchsorted(void[:-1], probes)] != probes
    return results[keep], extra[keep]


def found_of(expected, loose, actual):
    """Leave out pairs that may be missing, and are.

    Without stars, the numbers of probes begin again, so several expected pairs may look alike. Of
    these, those that must not be missing are found first.
    """
    if not loose.any():
        return expected
    pairs, keep = identities(expected), ~loose
    left = Counter(identities(actual))
    left.subtract(pairs[at] for at in np.flatnonzero(keep))
    for at in np.flatnonzero(loose):
        keep[at] = left[pairs[at]] > 0
        left[pairs[at]] -= 1
    return expected[keep]


def identities(results):
    """Return what tells each result from others: its probe and its code."""
    return list(zip(results.probes().tolist(), results.code.tolist(), strict=True))


def arranged(results, free, in_rows):
    """Return results in an order that depends on what is fixed of their own order only.

    Parameters
    ----------
    results : Results
    free : bool array
        For every mark, whether order before it is free; then the sides are taken apart, and pairs
        between two stars are sorted.
    in_rows : bool
        Whether the order inside a group is fixed, as it is by a scan.
    """
    segment = np.minimum(results.marks_before(), len(free) - 1)
    is_free = free[segment]
    if in_rows and not is_free.any():
        return results
    lane = np.where(results.kind == MARK, 2, results.side)
    order = np.lexsort((
        np.where(is_free | (not in_rows), results.code, 0),
        np.where(is_free, results.own_stars_before(), results.stars_before()),
        np.where(is_free, lane, 0),
        segment,
    ))  # fmt: skip
    return results[order]


def by_port(results):
    """Return results with those of R before those of S up to each mark; else they keep their order.

    It is what is fixed of results that leave by two ports.
    """
    port = np.where(results.kind == MARK, 2, results.side)
    return results[np.lexsort((port, results.marks_before()))]


def out_of_turn(results, free):
    """Return where a pair of a group comes before one of an earlier core; None if nowhere."""
    segment = np.minimum(results.marks_before(), len(free) - 1)
    stars, pair = results.stars_before(), results.kind == PAIR
    same = (stars[1:] == stars[:-1]) & pair[1:] & pair[:-1] & ~free[segment][1:]
    wrong = np.flatnonzero(same & (results.core[1:] < results.core[:-1]))
    return int(wrong[0]) + 1 if len(wrong) else None


def shown(results, at):
    """Return the results from ``at`` on as lines."""
    few = results[at : at + SHOWN]
    lines = [describe(int(s), int(c)) for s, c in zip(few.side, few.code, strict=True)]
    return lines or ["(nothing)"]


def difference(answer, actual, engine, *, ports=1):
    """Return a text that tells where ``actual`` results are no answer; None if they are one.

    ``ports`` is the number of ports by which they have left.
    """
    expected, loose = without_void(answer.results, answer.loose, answer.void)
    actual, _ = without_void(actual, actual.code, answer.void)
    expected = found_of(expected, loose, actual)
    if ports == 2:
        expected, actual = by_port(expected), by_port(actual)
    in_rows = engine != "index"
    if not in_rows and (at := out_of_turn(actual, answer.free)) is not None:
        return "\n".join([f"result {at}: cores out of turn", *shown(actual, at - 1)])
    expected, actual = (arranged(some, answer.free, in_rows) for some in (expected, actual))
    count = min(len(expected), len(actual))
    same = (expected.side[:count] == actual.side[:count]) & (
        expected.code[:count] == actual.code[:count]
    )
    if same.all() and len(expected) == len(actual):
        return None
    at = count if same.all() else int(np.argmin(same))
    lines = [f"result {at} of {len(expected)} expected, {len(actual)} found (arranged):"]
    for name, results in [("expected", expected), ("found", actual)]:
        lines += [f"  {name:8} {line}" for line in shown(results, at)]
    return "\n".join(lines)


# A core fails at a moment that nobody but the accelerator knows. So its own stars say which groups
# lack pairs (``docs/failures.md``). All else is fixed: every star and mark, and the pairs of the
# other cores.


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
    whole, least : Answer
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


# Run a program, and tell what differs.


@dataclass(frozen=True)
class Outcome:
    """Outcome of one program: its results beside the model's.

    Parameters
    ----------
    tuples, pairs, cycles : int
    difference : str or None
        Where the results differ from those of the model.
    facts : list
        What coverage counts of the answer, as (name, value).
    control_words : dict
        How often each operation, and ``(illegal)`` words, occurred.
    """

    tuples: int
    pairs: int
    cycles: int
    difference: str | None
    facts: list
    control_words: dict


def facts_of(answer, results):
    """Yield what occurred in an answer and in the results, each once for a program."""
    told = answer.results.code[~answer.results.is_pair]
    seen = {
        "overflow of R": (told & 4).any(),
        "overflow of S": (told & 8).any(),
        "disorder": (told & 2).any(),
        "an illegal word": (told & 1).any(),
        "free order": answer.free.any(),
        "fixed order": not answer.free.all(),
        "a broken promise": answer.loose.any(),
        "a failed core": (results.code[~results.is_pair] >> FAILED & 1).any(),
        "no pair": not answer.results.is_pair.any(),
    }
    yield from (("seen", name) for name, true in seen.items() if true)


class Checker:
    """An accelerator beside its model.

    Parameters
    ----------
    library : path-like
        Its simulator library.
    manifest : dict
        As read from ``manifest.json``.
    """

    def __init__(self, library, manifest):
        self.machine = Machine(library, manifest)
        self.model = model_of(manifest)
        self.manifest = manifest
        self.asked = self.kept = None
        layout = WordLayout(manifest["input_word"])
        kind, op = manifest["input_kinds"]["CONTROL"], manifest["operations"]["FLUSH"]
        self.flush = layout.word(kind=kind, control_op=op)

    def ended(self, words):
        """Return a program with a FLUSH at its end."""
        return np.ascontiguousarray(np.concatenate([words, self.flush]))

    def answer(self, words):
        """Return a program with a FLUSH at its end, and the model's answer, which is kept."""
        if self.asked is not words:
            self.asked, ended = words, self.ended(words)
            self.kept = ended, self.model.answer(ended)
        return self.kept

    def result_count(self, words):
        """Return how many results a program has to have."""
        return len(self.answer(words)[1].results)

    def check(self, words, feeding):
        """Run a program, to which a FLUSH is added, and return its :class:`Outcome`."""
        words, answer = self.answer(words)
        run = self.machine.run(words, int((answer.results.kind == MARK).sum()), feeding)
        results, wrong = read_results(self.manifest, run.words)
        told = None
        expected, found = answer, results
        if feeding.fault:
            core = feeding.fault.core
            least = self.model.answer(words, mute=core)
            expected, found, told = after_failure(answer, least, results, core)
        engine = parameters_of(self.manifest)["engine"]
        ports = len(self.manifest.get("result_ports", "o"))
        differs = difference(expected, found, engine, ports=ports)
        troubles = [text for text in (run.trouble, wrong, told, differs) if text]
        if not troubles:
            troubles = self.miscounted(run.counters, answer, results)
        pairs = int(results.is_pair.sum())
        text = "\n".join(troubles) or None
        return Outcome(
            sum(answer.tuples), pairs, run.cycles, text, list(facts_of(answer, results)),
            answer.control_words,
        )  # fmt: skip

    @staticmethod
    def miscounted(counters, answer, results):
        """Return texts about counters that tell something else than was seen."""
        seen = {
            "tuples_r": answer.tuples[0],
            "tuples_s": answer.tuples[1],
            "illegal": answer.control_words["(illegal)"],
            "results": int(results.is_pair.sum()),
            "stars": int(np.isin(results.kind, (STAR, INNER)).sum()),
            "marks": int((results.kind == MARK).sum()),
        }
        return [
            f"counter {name} is {counters[name]}, not {number}"
            for name, number in seen.items()
            if counters[name] != number
        ]

    def shrunk(self, words, feeding, deadline):
        """Return the smallest program found, and feeding, that still differ from the model.

        It has windows and bounds wherever a core that has been reset needs them.

        Parameters
        ----------
        words, feeding
            A program that does.
        deadline : callable
            Tells whether it is time to stop.
        """

        def fails(some, way):
            lawful = is_lawful(self.manifest, some)
            return lawful and self.check(some, way).difference is not None

        for simpler in (
            replace(feeding, fault=None),
            replace(feeding, before=0),
            replace(feeding, before=0, leap=0),
            replace(feeding, before=0, leap=0, words=0),
            replace(feeding, before=0, leap=0, words=0, stall_in=0),
            replace(feeding, before=0, leap=0, words=0, stall_in=0, stall_out=0),
            replace(feeding, before=0, leap=0, words=0, stall_in=0, stall_out=0, memory=None),
        ):
            if simpler.fault is not None:
                simpler = replace(simpler, fault=feeding.fault)
            if fails(words, simpler):
                feeding = simpler
        size = max(len(words) // 2, 1)
        while not deadline():
            smaller = False
            at = 0
            while at < len(words) and not deadline():
                fewer = np.delete(words, slice(at, at + size), axis=0)
                if fails(fewer, feeding):
                    words, smaller = fewer, True
                else:
                    at += size
            if size == 1 and not smaller:
                break
            size = max(size // 2, 1)
        return words, feeding
