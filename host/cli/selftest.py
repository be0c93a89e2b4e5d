# SPDX-License-Identifier: Apache-2.0
"""`python -m host selftest`: try everything that a device must be able to do, from the line up."""

import argparse
from contextlib import AbstractContextManager

from host.cli.command import add_wait, open_for_command, wait_of
from host.cli.devices import KINDS
from host.devices import Device
from host.devices.selftest import Outcome, self_test
from host.installation import CommandParser, command

__all__ = [
    "add_parser",
    "main",
]

#: Columns of the names of steps and of outcomes.
_STEP, _OUTCOME = 10, 8


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``selftest`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "selftest",
        help="try a device from the line up: greeting, registers, a ping, a small join",
        description="Open a device, and try everything that it must be able to do, from the line "
        "up: greeting, identity, registers, random bytes over the link, a small join compared with "
        "the reference join, counters. Each step says what it has found, and one that fails where "
        "to look for the fault. Exit code 1 if a step has failed. A board behind a link is reset.",
        example="software:",
    )
    parser.add_argument("device", metavar="DEVICE", help=f"{', '.join(KINDS)}")
    parser.add_argument(
        "--tuples", type=int, default=200, metavar="N",
        help="tuples of the small join; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of random values")
    add_wait(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the self test, and print a line for each step; return 1 if one has failed."""
    wait = wait_of(options)

    def opened() -> AbstractContextManager[Device]:
        return open_for_command(options.device, command("host selftest"), wait)

    failed = False
    for finding in self_test(opened, tuples=options.tuples, seed=options.seed):
        print(f"{finding.step:{_STEP}}{finding.outcome.value:{_OUTCOME}}{finding.text}", flush=True)
        if finding.hint:
            print(f"{'':{_STEP + _OUTCOME}}{finding.hint}", flush=True)
        failed |= finding.outcome is Outcome.FAILED
    return int(failed)
