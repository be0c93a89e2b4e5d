# SPDX-License-Identifier: Apache-2.0
"""Mutate modules and see their tests fail: ``python -m tests.mutation``."""

import argparse
import json
import sys

from tests.mutation.catalogue import TARGETS
from tests.mutation.report import SCORES, keep, score_of, write
from tests.mutation.survey import ROOT, run_mutants


def main() -> int:
    """Run the mutants of the modules that are named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (default: 2)")
    parser.add_argument(
        "--again", action="store_true", help="run only what was not noticed the last time"
    )
    parser.add_argument(
        "--tenths", type=int, default=10, help="of every ten mutants run so many (default: 10)"
    )
    options = parser.parse_args()
    if unknown := set(options.modules) - set(TARGETS):
        parser.error(f"not mutated: {', '.join(sorted(unknown))}")
    for module in options.modules or TARGETS:
        mutants = run_mutants(
            module,
            TARGETS[module].tests,
            jobs=options.jobs,
            again=options.again,
            tenths=options.tenths,
            left_out=TARGETS[module].left_out,
        )
        keep(module, mutants)
        for mutant in mutants:
            if mutant.outcome in ("survived", "untested"):
                print(f"  {mutant.outcome:8}  {mutant.function}: {mutant.statement}")
        scores = json.loads(SCORES.read_text(encoding="utf-8"))
        noticed, every = score_of(scores[module])
        print(f"{module}: {noticed} of {every} mutants noticed", flush=True)
        write(ROOT / "docs" / "mutation.md", scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
