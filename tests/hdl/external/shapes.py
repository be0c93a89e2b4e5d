# SPDX-License-Identifier: Apache-2.0
"""Small accelerators with external memory, for the tests of its parts."""

from tests.hdl.region_model import region_parameters

__all__ = ["external_parameters"]


def external_parameters(*, lanes=1, **changes):
    """Parameters of a small region with a memory whose beats just hold its rows."""
    width = 8
    while width < 6 * lanes:
        width *= 2
    values = {"memory_width": width, "memory_burst": 2, "memory_latency": 4, **changes}
    return region_parameters(store="external", lanes=lanes, **values)
