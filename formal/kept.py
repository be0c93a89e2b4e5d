# SPDX-License-Identifier: Apache-2.0
"""Keep the outcome of every proof at once, so that an interrupted run goes on where it stopped."""

from dataclasses import asdict
import hashlib
import inspect
import json
from pathlib import Path

from . import mutation, runner, solver
from .runner import Outcome

__all__ = ["KEPT", "Kept"]

#: Where outcomes with all mutants are kept.
KEPT = Path("build") / "proofs"

#: Modules that decide how an outcome is found. What was kept before they changed does not count.
METHOD = (mutation, runner, solver)


class Kept:
    """Good outcomes with all mutants, one file per proof.

    An outcome counts for as long as the bench is the same circuit, its claims and covers have the
    same words, and the sources of what is changed to make mutants are the same.

    Parameters
    ----------
    folder : path-like
        Where the files are; it need not exist.
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    def get(self, proof):
        """Return the outcome of a proof if it was kept and still counts, otherwise None."""
        try:
            record = json.loads(self._path(proof).read_text(encoding="utf-8"))
            return Outcome(**record["outcome"]) if record["key"] == key_of(proof) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # a file that is damaged is one that is not there

    def put(self, proof, outcome):
        """Keep the outcome of a proof; one that is not good is not kept."""
        if outcome.good:
            self.folder.mkdir(parents=True, exist_ok=True)
            made = self._path(proof).with_suffix(".part")
            made.write_text(json.dumps({"key": key_of(proof), "outcome": asdict(outcome)}))
            made.replace(self._path(proof))

    def _path(self, proof):
        return self.folder / f"{proof.name}.json"


def key_of(proof):
    """Return a hash of everything that the outcome of a proof with all its mutants follows from."""
    bench = proof.build()
    said = [
        runner.plain(bench.rtlil()), bench.claims, bench.covers, bench.forgotten,
        proof.depth, proof.induction, proof.of_reset, sorted(proof.spared),
        *map(inspect.getsource, [*proof.mutate, *METHOD]),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
