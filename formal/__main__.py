# SPDX-License-Identifier: Apache-2.0
"""``python -m formal``: prove properties of components (make formal)."""

import sys

from hdl.fpga.tools import ToolError
from hdl.installation import CommandParser, fpga_tools

__all__ = ["main", "parser"]


def prove(options):
    """Run proofs, and print a line for each of them."""
    from .catalogue import PROOFS
    from .kept import KEPT, Kept
    from .runner import run_proofs
    from .table import table, update

    unknown = [name for name in options.names if name not in PROOFS]
    if unknown:
        raise ValueError(f"There are no proofs called {unknown!r}; there are: {', '.join(PROOFS)}")
    proofs = [PROOFS[name] for name in options.names or PROOFS]
    kept = None if options.anew else Kept(KEPT)
    pairs = []
    for outcome in run_proofs(
        proofs, mutants=None if options.mutants else 0, jobs=options.jobs, kept=kept
    ):
        proof = PROOFS[outcome.name]
        pairs.append((proof, outcome))
        print("\n".join(table(proof, outcome)), flush=True)
    claims = sum(outcome.claims for _, outcome in pairs)
    killed = sum(len(outcome.killed) for _, outcome in pairs)
    survivors = sum(len(outcome.survivors) for _, outcome in pairs)
    good = all(outcome.good for _, outcome in pairs)
    tried = f", {killed} mutants killed, {survivors} survive" if options.mutants else ""
    print(f"{len(pairs)} proofs, {claims} properties{tried}: {'all good' if good else 'FAILED'}")
    if options.document and good and options.mutants:
        update(options.document, list(PROOFS.values()), pairs)
    return 0 if good else 1


def parser():
    """Return the parser of the command line."""
    command = CommandParser(
        prog="python -m formal", description="Prove properties of components of hdl.",
        example="stream-register merger-order",
    )  # fmt: skip
    command.add_argument("names", nargs="*", metavar="NAME", help="proofs; all of them by default")
    command.add_argument(
        "--mutants", action="store_true", help="also change the components, and see each proof fail"
    )
    command.add_argument(
        "--anew", action="store_true",
        help="run also what has run with mutants and not changed since, as build/proofs tells",
    )  # fmt: skip
    command.add_argument("--jobs", type=int, default=1, metavar="N", help="proofs at a time")
    command.add_argument(
        "--document", metavar="FILE",
        help="keep their rows of the table there, once they have run with mutants and are good",
    )  # fmt: skip
    return command


def main(arguments=None):
    """Run the command line; return the exit code."""
    command = parser()
    try:
        return prove(command.parse_args(arguments))
    except ImportError as error:
        print(f"{command.prog}: {error}; get it with: {fpga_tools()}", file=sys.stderr)
        return 1
    except (ValueError, ToolError) as error:
        print(f"{command.prog}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1


if __name__ == "__main__":
    sys.exit(main())
