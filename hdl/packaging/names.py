# SPDX-License-Identifier: Apache-2.0
"""The names that a package gives to modules, files and constants."""

from dataclasses import dataclass
import re

from hdl.verilog.keywords import KEYWORDS

__all__ = ["DEFAULT_PREFIX", "PackageNames"]

#: Prefix of the kit's own modules, unless another one is asked for.
DEFAULT_PREFIX = "splitjoin_"

LEGAL = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_")


@dataclass(frozen=True)
class PackageNames:
    """Names that begin with one prefix, so that they meet no other name in a design.

    Parameters
    ----------
    prefix : str
        What the names of all modules begin with, such as ``"trades_"``: lower-case letters, digits
        and single underscores, the last one at the end.
    """

    prefix: str = DEFAULT_PREFIX

    def __post_init__(self):
        if not LEGAL.fullmatch(self.prefix):
            raise ValueError(
                f"Module prefix must be in lower case and end in one underscore, such as "
                f"{DEFAULT_PREFIX!r}, not {self.prefix!r}"
            )
        if self.name in KEYWORDS:
            raise ValueError(
                f"Module prefix {self.prefix!r} makes the name {self.name!r}, which is a reserved "
                f"word of SystemVerilog; choose another prefix"
            )

    @property
    def name(self):
        """Return the name of the package, which its files begin with."""
        return self.prefix.removesuffix("_")

    @property
    def macro(self):
        """Return what the constants of the C header begin with."""
        return self.prefix.upper()

    def top(self, shell):
        """Return the name of the top module: that of a shell, or of the bare accelerator."""
        return self.name if shell is None else f"{self.prefix}{shell}"
