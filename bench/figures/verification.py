# SPDX-License-Identifier: Apache-2.0
"""What the checks of the kit have found: benches, proofs, mutants, the soak, netlists, failures."""

import ast
from dataclasses import dataclass
from functools import cache
import hashlib
import json
import math
from pathlib import Path

from bench.handshake import HANDSHAKE, LOW_LATENCY
from hdl.fpga.tools import ToolError
from hdl.parameters import JoinParameters, KeyField
from host.errors import MissingToolError
from host.installation import processors
from sim.benches import shapes as bench_shapes
from sim.benches.runner import run_benches
from sim.failures.bundles import faulty, flippable
from sim.failures.flip_trials import FLIP_SHAPES, run_flip
from sim.failures.trials import SHAPES, run_trial
from sim.netlist import shapes as netlist_shapes
from sim.netlist.commands import run_netlist

from .registry import NotMeasured, Result, figure

__all__ = ["CHAINS", "Entry", "LEDGER", "SCORES", "code_digest", "entries", "record"]

# The ledger of the soak is a table in ``docs/soak.md``.

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "docs" / "soak.md"
#: Columns of the table that are numbers.
COUNTS = ("seed", "shapes", "programs", "tuples", "pairs", "cycles", "differences")
#: Number of tuples that the recorded runs must add up to.
ENOUGH = 10**8


@dataclass(frozen=True)
class Entry:
    """One run: its day, the commit that it ran on, and what it counted."""

    day: str
    commit: str
    seed: int
    shapes: int
    programs: int
    tuples: int
    pairs: int
    cycles: int
    differences: int

    def row(self):
        """Return the entry as a row of the table."""
        counts = " | ".join(
            str(self.seed) if name == "seed" else f"{getattr(self, name):,}" for name in COUNTS
        )
        return f"| {self.day} | {self.commit} | {counts} |"


def entries(text):
    """Return the entries of a ledger's text."""
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")]
            for line in text.splitlines() if line.startswith("| 20")]  # fmt: skip
    return [
        Entry(day, commit, *(int(cell.replace(",", "")) for cell in counts))
        for day, commit, *counts in rows
    ]


def record(entry, path=LEDGER):
    """Add an entry at the end of the ledger, whose table is the last thing in it."""
    text = path.read_text(encoding="utf-8").rstrip("\n")
    path.write_text(f"{text}\n{entry.row()}\n", encoding="utf-8")


@figure("soak.differences", unit="differences", goal="<= 0")
def soak_differences(report):
    """Differences from the model in all runs of ``docs/soak.md``, which must have 10**8 tuples."""
    runs = entries(LEDGER.read_text(encoding="utf-8")) if LEDGER.is_file() else ()
    if not runs:
        raise NotMeasured(f"no run is in docs/{LEDGER.name}: make soak MINUTES=60 RECORD=1")
    tuples, differences = (sum(getattr(run, n) for run in runs) for n in ("tuples", "differences"))
    missing = f", {ENOUGH - tuples:,} fewer than the goal asks for" if tuples < ENOUGH else ""
    commits = ", ".join(dict.fromkeys(run.commit for run in runs))
    return Result(
        differences,
        judged=differences if tuples >= ENOUGH else math.inf,
        notes=(f"{tuples:,} tuples in {len(runs)} runs{missing}; commits: {commits}",),
        details={"tuples": tuples},
    )


# The functional coverage of the cocotb benches.

#: Seed of tuples and stalls, fixed so that the figure is the same in every run.
BENCH_SEED = 1
KEYS = (KeyField(name="x", bits=8), KeyField(name="y", bits=11, signed=False))
#: Accelerators that only a checkout has, by the names of their benches.
CHAINS = {
    "a handshake join": JoinParameters.of(
        cores=3, sub_window=8, keys=KEYS, timestamp_bits=16, fan_in=2,
        architecture=HANDSHAKE,
    ),
    "a low-latency handshake join": JoinParameters.of(
        cores=3, sub_window=8, keys=KEYS, timestamp_bits=16, fan_in=2, comparator="equality",
        architecture=LOW_LATENCY,
    ),
}  # fmt: skip
CONDITIONS = f"{len(bench_shapes.SHAPES) + len(CHAINS)} accelerators, seed {BENCH_SEED}"


@cache
def covered():
    """Run all benches once for both figures; return what they have covered."""
    return run_benches(bench_shapes.SHAPES | CHAINS, seed=BENCH_SEED)


@figure("cocotb.coverage", unit="of 1", goal=">= 1")
def coverage(report):
    """Share of the cases that the cocotb benches meet, of those that their accelerators can meet.

    The benches cover every engine, comparator and shape of a preset. :mod:`sim.scenarios.cases`
    defines the cases and recognizes them in the words. The figure is measured only if all answers
    agree with the reference join.
    """
    share, _ = covered()
    return Result(share, notes=(CONDITIONS,))


@figure("coverage.crosses", unit="of 1", goal=">= 0.98")
def crosses(report):
    """Share of the crosses that the cocotb benches together meet, of those that any can meet.

    A cross is a kind of word, what the word waited for, the state of the window that it met, and
    the precision (:mod:`sim.scenarios.crosses`).
    """
    _, met = covered()
    holes = [", ".join(names) for names, words in met.items() if not words]
    share = 1 - len(holes) / len(met)
    notes = (f"{len(met)} crosses; {CONDITIONS}", *(f"not met: {hole}" for hole in holes))
    return Result(share, notes=notes, details={"holes": holes})


# Routed netlists beside the software device.

#: Least number of tuples that each netlist receives.
NETLIST_TUPLES = 100_000


@figure("netlist.differences", unit="results", goal="<= 0")
def netlist_differences(report):
    """Number of results of all small netlists that differ from the software device's results."""
    try:
        rows = [
            run_netlist(name, parameters, tuples=NETLIST_TUPLES, seed=1, report=report)
            for name, parameters in netlist_shapes.SHAPES.items()
        ]
    except (ToolError, MissingToolError) as error:
        raise NotMeasured(str(error)) from error
    least = min(row["tuples"] for row in rows)
    results = sum(row["results"] for row in rows)
    note = f"{len(rows)} netlists, {least:,} tuples each at the least, {results:,} results"
    return Result(
        sum(row["differences"] for row in rows), notes=(note,), details={"netlists": rows}
    )


# What ``make formal`` proves, and which share of the mutants its proofs notice.

#: Least number of mutants that have to be tried.
LEAST_MUTANTS = 120


@figure("formal.properties", unit="properties", goal=">= 60")
def properties(report):
    """Number of properties that are proved; none if a proof of any component fails."""
    outcomes = proved(report)
    failed = [outcome.name for outcome in outcomes if outcome.failures]
    claims = sum(outcome.claims for outcome in outcomes)
    note = f"{len(outcomes)} proofs" + (f", of which fail: {', '.join(failed)}" if failed else "")
    return Result(0 if failed else claims, notes=(note,))


@figure("formal.mutants_killed", unit="of 1", goal=">= 1")
def mutants_killed(report):
    """Share of the mutants of all proved components that break the proof of their component."""
    outcomes = proved(report)
    killed = sum(len(outcome.killed) for outcome in outcomes)
    tried = killed + sum(len(outcome.survivors) for outcome in outcomes)
    spared = sum(outcome.spared for outcome in outcomes)
    share = killed / tried if tried else 0.0
    return Result(
        share,
        judged=share if tried >= LEAST_MUTANTS else 0.0,
        notes=(f"{killed} of {tried} mutants; {spared} more that another check has to notice",),
        details={"mutants": tried, "spared": spared},
    )


@cache
def proved(report):
    """Run all proofs with all their mutants, once; what has run before is not run again."""
    try:
        from formal.catalogue import PROOFS
        from formal.kept import KEPT, Kept
        from formal.runner import run_proofs

        outcomes = []
        jobs = processors()
        proofs = list(PROOFS.values())
        for outcome in run_proofs(proofs, mutants=None, jobs=jobs, kept=Kept(KEPT)):
            report(f"proof of {outcome.name}: {outcome.claims} properties")
            outcomes.append(outcome)
    except (ImportError, ToolError) as error:
        raise NotMeasured(f"{error}; install what proofs need with: make setup-fpga") from error
    return outcomes


# Whether exactly the listed pairs are missing after a core has failed.

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


# Mutants of modules that decide answers, as ``make mutation`` found them.

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_digest(source):
    """Return the SHA-256 of a module's code, without comments, docstrings and layout.

    Parameters
    ----------
    source : str
        The text of the module.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            # A body must not be empty, so that something has to stand where the docstring stood.
            node.body[0] = ast.Pass()
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()


SCORES = ROOT / "docs" / "mutation.json"


@figure("mutation.score_host", unit="of 1", goal=">= 0.85")
def score_host(report):
    """Share of the host's mutants, of all that were run, that the tests of their module notice."""
    return _score("host/")


@figure("mutation.score_spark", unit="of 1", goal=">= 0.85")
def score_spark(report):
    """Share of the mutants of Spark's tasks and plans that the tests of their module notice."""
    return _score("spark_offload/")


def _score(package):
    """Return the share of the mutants of a package that were noticed; equivalent ones count."""
    try:
        scores = json.loads(SCORES.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotMeasured(f"{SCORES} is missing; write it with: make mutation") from error
    modules = {name: row for name, row in scores.items() if name.startswith(package)}
    if not modules:
        raise NotMeasured(f"no module of {package} was run; make mutation does")
    changed = [
        name
        for name, row in modules.items()
        if code_digest((ROOT / name).read_text(encoding="utf-8")) != row["code"]
    ]
    if changed:
        raise NotMeasured(
            f"{', '.join(changed)} changed since: make mutation OPTIONS='{' '.join(changed)}'"
        )
    noticed = sum(row["killed"] + row["endless"] for row in modules.values())
    run = noticed + sum(row["survived"] + row["untested"] for row in modules.values())
    there = run + sum(row["left out"] for row in modules.values())
    return Result(
        noticed / run,
        notes=(f"{noticed} of {run} mutants that were run, of {there} in {len(modules)} modules",),
        details={"noticed": noticed, "run": run, "mutants": there},
    )
