# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators for tests; without the tools that build them, a test is skipped."""

import pytest

from hdl.bundle import write_bundle
from host.errors import MissingToolError

__all__ = ["simulated_bundle"]


def simulated_bundle(parameters, folder):
    """Write a bundle, and build its library or find it in the cache; return the device's URI."""
    library = pytest.importorskip("sim.verilated.library")
    write_bundle(parameters, folder)
    try:
        library.build_library(folder)
    except MissingToolError as error:
        pytest.skip(str(error))
    return f"sim:{folder}"
