# SPDX-License-Identifier: Apache-2.0
"""Runner of proofs: checks the claims, the covers and the mutants."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
import os
from pathlib import Path
import re
from tempfile import TemporaryDirectory
import warnings

from amaranth.hdl import UnusedElaboratable

from hdl.fpga.tools import ToolError

from .solver import bounded, inductive, load, reachable, translate

__all__ = ["Outcome", "run_proof", "run_proofs"]

#: Number of mutants that one run of Yosys translates.
BATCH = 24


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one proof.

    Attributes
    ----------
    name : str
    claims, covers : int
        Number of claims and covers.
    failures : list of str
        Reasons why the proof fails: claims that do not hold, covers that are not reached.
    killed : list of str
        Mutants that break the proof.
    survivors : list of str
        Mutants that do not break the proof.
    spared : int
        Number of mutants that the proof need not detect.
    seconds : float
        Processor time, with that of Yosys.
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
        """Return whether everything holds and no mutant survives."""
        return not self.failures and not self.survivors


def run_proofs(proofs, *, mutants, jobs, kept=None):
    """Run proofs, each as soon as a worker is free; yield the outcomes in order.

    With ``kept``, and all mutants, outcomes are kept as soon as they are there, and proofs whose
    outcomes still count do not run.

    Parameters
    ----------
    proofs : list of Proof
    mutants : int or None
        Number of mutants to try for each proof; None for all.
    jobs : int
        Number of worker processes.
    kept : formal.kept.Kept, optional
        Where outcomes are kept.
    """
    if jobs == 1:
        yield from (run_or_find(proof, mutants, kept) for proof in proofs)
        return
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        waiting = [pool.submit(run_named, proof.name, mutants, kept) for proof in proofs]
        yield from (future.result() for future in waiting)


def run_named(name, mutants, kept):
    """Run the proof of this name; benches cannot be passed between processes."""
    from .catalogue import PROOFS

    return run_or_find(PROOFS[name], mutants, kept)


def run_or_find(proof, mutants, kept):
    """Return the outcome that was kept, or run the proof and keep its outcome."""
    if kept is None or mutants is not None:
        return run_proof(proof, mutants=mutants)
    outcome = kept.get(proof)
    if outcome is None:
        outcome = run_proof(proof)
        kept.put(proof, outcome)
    return outcome


def run_proof(proof, *, mutants=None):
    """Run one proof, with at most ``mutants`` of its mutants."""
    begun = processor_seconds()
    # A mutant that is no valid circuit leaves unused components behind.
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
        killed=killed, survivors=survivors, spared=proof.spares,
        seconds=processor_seconds() - begun,
    )  # fmt: skip


def processor_seconds():
    """Return the processor time of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def check(proof, bench, netlist):
    """Yield the reasons why the proof fails, if it does."""

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
    """Return RTLIL without source locations, which do not affect the circuit."""
    return re.sub(r"^\s*attribute \\src .*\n", "", text, flags=re.MULTILINE)


def hunt(proof, folder, original, most, forgotten):
    """Try mutants that differ from the original; return the detected ones and the survivors."""
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
    """Return the bench with a mutant as RTLIL, or None if the mutant is no valid circuit."""
    with mutant.applied():
        try:
            return proof.build().rtlil()
        except Exception:  # a mutant may fail in any way
            return None


def translate_mutants(names, folder, forgotten):
    """Translate mutants, one by one if the batch fails.

    Mutants that are no valid circuit, as they have combinational loops, get no netlist.
    """
    try:
        translate(names, folder, forget=forgotten)
    except ToolError:
        for name in names:
            (folder / f"{name}.aag").unlink(missing_ok=True)
        if len(names) == 1:
            return
        for name in names:
            translate_mutants([name], folder, forgotten)
