# SPDX-License-Identifier: Apache-2.0
"""Draw faults, and see which test of `make test` notices each: a line of a table per fault."""

import argparse
import os
import subprocess
import sys

from formal.catalogue import PROOFS

from .catalogue import ROOT, drawn, fault, stages

__all__ = []


def tests_that_notice(component, number):
    """Return the first test that fails with the fault; None if all pass."""
    for tests in stages(component):
        command = [sys.executable, "-m", "tests.faults.run"]
        command += [component.__module__, component.__name__, str(number), tests]
        run = subprocess.run(
            command, cwd=ROOT, text=True, capture_output=True, check=False,
            env={**os.environ, "CI": "1"},
        )  # fmt: skip
        found = run.stdout.rpartition("found by: ")[2].strip()
        if "Timeout (" in run.stderr:  # it ends the process
            return f"{tests.removeprefix('tests/')}, which takes too long"
        if not run.stdout or found == run.stdout.strip():
            raise RuntimeError(f"{tests} could not be run: {run.stderr[-2000:]}")
        if found != "none":
            return found.split("[")[0].replace("tests/", "")
    return None


def proofs_of(component):
    """Return the names of the proofs that a component's mutants are held against."""
    return [name for name, proof in PROOFS.items() if component in proof.mutate]


def main():
    """Run the command line."""
    top = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    top.add_argument("--seed", type=int, default=1, metavar="N", help="which faults; default: 1")
    top.add_argument("--count", type=int, default=20, metavar="N", help="how many; default: 20")
    top.add_argument("--skip", type=int, default=0, metavar="N", help="how many first; default: 0")
    options = top.parse_args()
    missed = 0
    print("| component | fault | noticed by | proofs of the component |\n|---|---|---|---|")
    for component, number in drawn(options.seed, options.count)[options.skip :]:
        change = fault(component, number)
        test = tests_that_notice(component, number)
        missed += test is None
        proofs = ", ".join(f"`{name}`" for name in proofs_of(component)) or "none"
        where = f"`{component.__name__}.{change.function}` | `{change.text.replace('|', '&#124;')}`"
        print(f"| {where} | {f'`{test}`' if test else '**nothing**'} | {proofs} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
