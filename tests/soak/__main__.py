# SPDX-License-Identifier: Apache-2.0
"""Run random programs on random accelerators beside a model: ``python -m tests.soak``."""

import argparse
import datetime
import secrets
import sys

from bench.figures.verification import Entry, record
from hdl.fpga.provenance import commit

from .runs import Soak, soak

__all__ = ["main", "replay", "run"]


def say(text):
    """Report progress on stderr, so that stdout holds only what was covered and found."""
    print(f"soak: {text}", file=sys.stderr, flush=True)


def run(*, seed, minutes, shapes, recorded, report):
    """Soak for some minutes, print what was covered and found; return the exit code."""
    if seed is None:
        seed = secrets.randbelow(1_000_000)
    if minutes <= 0:
        raise ValueError(f"Option --minutes must be more than zero, not {minutes:g}")
    if shapes is None:
        shapes = max(1, round(minutes))
    report(f"seed {seed}: {shapes} shapes in {minutes:g} minutes")
    tally = soak(seed, seconds=60 * minutes, shapes=shapes, report=report)
    for line in tally.coverage():
        print(line)
    print(f"seed {seed}: {tally.line()}", flush=True)
    if recorded:
        counts = {name: getattr(tally, name) for name in
                  ("shapes", "programs", "tuples", "pairs", "cycles", "differences")}  # fmt: skip
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        record(Entry(day=day, commit=commit() or "-", seed=seed, **counts))
    return 1 if tally.differences else 0


def replay(seed, case, report):
    """Run one case of a seed again; return the exit code."""
    if seed is None:
        raise ValueError("A case belongs to a seed: give --seed S as well")
    number, dot, which = case.partition(".")
    if not (dot and number.isdecimal() and which.isdecimal()):
        raise ValueError(f"Case must be the numbers of a shape and a program, N.M, not {case!r}")
    run = Soak(seed, report)
    manifest, checker = run.shape(int(number))
    differs = run.case(int(number), int(which), manifest, checker)
    print(f"case {case} of seed {seed}: {'differs' if differs else 'no difference'}")
    return 1 if differs else 0


def main():
    """Run the command line; return 1 if anything differs from the model."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, metavar="N", help="default: 5")
    parser.add_argument("--seed", type=int, metavar="S", help="default: a new one")
    parser.add_argument(
        "--shapes", type=int, metavar="N", help="accelerators to build; default: one a minute"
    )
    parser.add_argument("--case", metavar="N.M", help="run only program M of shape N, shrunk")
    parser.add_argument("--record", action="store_true", help="add the run to docs/soak.md")
    options = parser.parse_args()
    try:
        if options.case is not None:
            return replay(options.seed, options.case, say)
        return run(
            seed=options.seed, minutes=options.minutes, shapes=options.shapes,
            recorded=options.record, report=say,
        )  # fmt: skip
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
