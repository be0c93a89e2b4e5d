# SPDX-License-Identifier: Apache-2.0
"""Whether the kit runs from a checkout or was installed by pip."""

from pathlib import Path

__all__ = ["fpga_tools", "project_file"]


def project_file() -> Path | None:
    """Return the ``pyproject.toml`` of the checkout with this file; None in an installed kit."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    return file if file.is_file() else None


def fpga_tools() -> str:
    """Return the command that installs the tools for real devices."""
    return "pip install 'splitjoin-kit[fpga]'" if project_file() is None else "make setup-fpga"
