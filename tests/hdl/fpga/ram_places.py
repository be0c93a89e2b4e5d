# SPDX-License-Identifier: Apache-2.0
"""Where sites of block RAMs are."""

import re

__all__ = ["places"]


def places(sites):
    """Column and row of every site by name."""
    return {
        name: tuple(map(int, re.fullmatch(r"X(\d+)/Y(\d+)/EBR[0-3]", site).groups()))
        for name, site in sites.items()
    }
