# SPDX-License-Identifier: Apache-2.0
"""``python -m sim soak``."""

import datetime
import secrets

from hdl.fpga.provenance import commit

from .ledger import Entry, record
from .soak import Soak, soak

__all__ = ["replay", "run"]


def run(*, seed, minutes, shapes, recorded, report):
    """Soak for some minutes, print what was covered and found; return the exit code."""
    if seed is None:
        seed = secrets.randbelow(1_000_000)
    if minutes <= 0:
        raise ValueError(f"Option --minutes must be more than zero, not {minutes:g}")
    if shapes is None:
        shapes = max(1, round(minutes))
    report(f"soak, seed {seed}: {shapes} shapes in {minutes:g} minutes")
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
    number, dot, which = case.partition(".")
    if not (dot and number.isdecimal() and which.isdecimal()):
        raise ValueError(f"Case must be the numbers of a shape and a program, N.M, not {case!r}")
    run = Soak(seed, report)
    manifest, checker = run.shape(int(number))
    differs = run.case(int(number), int(which), manifest, checker)
    print(f"case {case} of seed {seed}: {'differs' if differs else 'no difference'}")
    return 1 if differs else 0
