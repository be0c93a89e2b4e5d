# SPDX-License-Identifier: Apache-2.0
"""A bundle without Verilog, for scenarios in Amaranth's simulator."""

import json

from hdl.manifest import describe

__all__ = ["manifest_of"]


def manifest_of(parameters, folder):
    """Write a bundle with everything but the Verilog, which is empty; return its path."""
    (folder / "splitjoin.v").write_text("")
    (folder / "manifest.json").write_text(
        json.dumps(describe(parameters, "", verilog_file="splitjoin.v"))
    )
    return folder
