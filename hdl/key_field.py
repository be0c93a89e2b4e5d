# SPDX-License-Identifier: Apache-2.0
"""A compared field of a tuple."""

from dataclasses import dataclass

from .parameter_checks import check_key_field

__all__ = ["KeyField"]


@dataclass(frozen=True, kw_only=True)
class KeyField:
    """One compared field of a tuple.

    Parameters
    ----------
    name : str
        Identifier; also the attribute that a custom ``predicate(r, s)`` reads.
    bits : int
        Width, 1 to 64.
    signed : bool
        Whether the field is in two's complement.
    """

    name: str
    bits: int
    signed: bool = True

    def __post_init__(self):
        check_key_field(self)
