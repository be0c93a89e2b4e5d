# SPDX-License-Identifier: Apache-2.0
"""How the command line of another package is called, for help texts that send the reader there."""

__all__ = ["sibling_command"]


def sibling_command(parser, words):
    """Return how another command of the kit is called, by the way in which this one was called.

    Parameters
    ----------
    parser : ArgumentParser
        Of a subcommand of a package, such as ``python -m hdl route`` or ``splitjoin hdl route``.
    words : str
        Package and subcommand of the other command, such as ``"sim saturate"``.
    """
    caller = parser.prog.split()[:-2]  # without the package and the subcommand of this one
    return " ".join([*caller, words])
