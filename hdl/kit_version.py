# SPDX-License-Identifier: Apache-2.0
"""The version of the kit, in a checkout or installed."""

import importlib.metadata
from pathlib import Path
import tomllib

__all__ = ["kit_version"]


def kit_version() -> str:
    """Return the version of the kit.

    In a checkout, ``pyproject.toml`` is the only place that states it.
    """
    project = Path(__file__).parents[1] / "pyproject.toml"
    if project.is_file():
        described = tomllib.loads(project.read_text(encoding="utf-8"))
        return str(described["project"]["version"])
    return importlib.metadata.version("splitjoin-kit")
