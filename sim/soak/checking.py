# SPDX-License-Identifier: Apache-2.0
"""One program on one accelerator: does what comes out agree with the model?"""

from dataclasses import dataclass, replace

import numpy as np

from .chains import model_of
from .compare import difference
from .losses import after_failure
from .machine import Machine
from .masks import is_lawful
from .results import FAILED, INNER, MARK, STAR, read_results
from .words import WordLayout

__all__ = ["Checker", "Outcome"]


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
        engine = self.manifest["parameters"]["engine"]
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
