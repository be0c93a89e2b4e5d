# SPDX-License-Identifier: Apache-2.0
"""The names of the shells, for what needs to know no more."""

__all__ = ["SHELLS", "shell_top"]

#: Shells that ``python -m hdl generate --shell`` writes.
SHELLS = ("axi",)


def shell_top(shell):
    """Return the name of a shell's top module, which its files begin with too."""
    return f"splitjoin_{shell}"
