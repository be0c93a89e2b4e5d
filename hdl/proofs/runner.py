# SPDX-License-Identifier: Apache-2.0
"""Runs proofs: the claims, the covers, the mutants."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
import re
from tempfile import TemporaryDirectory
import time
import warnings

from amaranth.hdl import UnusedElaboratable

from hdl.fpga.tools import ToolError

from .solver import bounded, inductive, load, reachable, translate

__all__ = ["Outcome", "run_proof", "run_proofs"]

#: Mutants that one run of Yosys translates.
BATCH = 24


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one proof.

    Attributes
    ----------
    name : str
    claims, covers : int
    failures : list of str
        Why it is no proof: claims that do not hold, covers that are not reached.
    killed : list of str
        Mutants that break it.
    survivors : list of str
        Those that do not.
    spared : int
        Mutants that it need not notice.
    seconds : float
    """

    name: str
    claims: int
    covers: int
    failures: list
    killed: list
    survivors: list
    spared: int
    seconds: float

    @property
    def good(self):
        """Does everything hold, and no mutant survive?"""
        return not self.failures and not self.survivors


def run_proofs(proofs, *, mutants, jobs):
    """Run proofs, each as soon as a worker is free; yield the outcomes in order.

    Parameters
    ----------
    proofs : list of Proof
    mutants : int or None
        How many mutants to try of each proof; all of them if ``None``.
    jobs : int
        Workers.
    """
    if jobs == 1:
        yield from (run_proof(proof, mutants=mutants) for proof in proofs)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        waiting = [pool.submit(run_named, proof.name, mutants) for proof in proofs]
        yield from (future.result() for future in waiting)


def run_named(name, mutants):
    """Run the proof of this name: benches do not travel between processes."""
    from .catalogue import PROOFS

    return run_proof(PROOFS[name], mutants=mutants)


def run_proof(proof, *, mutants=None):
    """Run one proof, and its first so many mutants."""
    begun = time.monotonic()
    # Of a mutant that is no circuit, components are left over.
    with TemporaryDirectory() as made, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        folder = Path(made)
        bench = proof.build()
        text = bench.rtlil()
        (folder / "proof.il").write_text(text)
        translate(["proof"], folder, forget=bench.forgotten)
        failures = list(check(proof, bench, load("proof", folder)))
        killed, survivors = [], []
        if not failures and mutants != 0:
            killed, survivors = hunt(proof, folder, plain(text), mutants, bench.forgotten)
            if mutants is None and not killed:
                failures.append("no mutant breaks it")
    return Outcome(
        name=proof.name, claims=len(bench.claims), covers=len(bench.covers), failures=failures,
        killed=killed, survivors=survivors, spared=proof.spares, seconds=time.monotonic() - begun,
    )  # fmt: skip


def check(proof, bench, netlist):
    """Yield why the claims do not hold, if they do not."""

    def said(answer):
        words = dict.fromkeys(bench.words(name) for name in answer.broken)
        return f"{'; '.join(words)} (cycle {answer.cycle})"

    base = bounded(netlist, depth=proof.depth)
    if not base.holds:
        yield f"does not hold: {said(base)}"
        return
    covers = reachable(netlist, depth=proof.depth)
    if not covers.holds:
        yield f"cannot happen: {said(covers)}"
    if proof.induction:
        step = inductive(netlist, cycles=proof.induction)
        if not step.holds:
            yield f"does not follow: {said(step)}"


def plain(text):
    """Return RTLIL without what says nothing of the circuit."""
    return re.sub(r"^\s*attribute \\src .*\n", "", text, flags=re.MULTILINE)


def hunt(proof, folder, original, most, forgotten):
    """Try mutants that differ from the original; return those that are noticed, and the others."""
    seen = {original}
    found = {}
    for mutant in proof.mutants():
        if len(found) == most:
            break
        text = mutated(proof, mutant)
        if text is not None and plain(text) not in seen:
            seen.add(plain(text))
            name = f"mutant_{len(found)}"
            (folder / f"{name}.il").write_text(text)
            found[name] = mutant
    names = list(found)
    for first in range(0, len(names), BATCH):
        translate_mutants(names[first : first + BATCH], folder, forgotten)
    killed, survivors = [], []
    for name, mutant in found.items():
        if (folder / f"{name}.aag").exists():
            answer = bounded(load(name, folder), depth=proof.depth, what=("claim",))
            (survivors if answer.holds else killed).append(mutant.name)
    return killed, survivors


def mutated(proof, mutant):
    """Return the bench with a mutant in it as RTLIL; nothing if there is no such circuit."""
    with mutant.applied():
        try:
            return proof.build().rtlil()
        except Exception:  # whatever its source leads to
            return None


def translate_mutants(names, folder, forgotten):
    """Translate mutants; those that are no circuit, for they have loops, one by one in vain."""
    try:
        translate(names, folder, forget=forgotten)
    except ToolError:
        for name in names:
            (folder / f"{name}.aag").unlink(missing_ok=True)
        if len(names) == 1:
            return
        for name in names:
            translate_mutants([name], folder, forgotten)
