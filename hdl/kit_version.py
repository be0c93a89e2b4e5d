# SPDX-License-Identifier: Apache-2.0
"""The version of the kit, in a checkout or installed."""

import importlib.metadata
import tomllib

from hdl.installation import project_file

__all__ = ["kit_version"]


def kit_version() -> str:
    """Return the version of the kit.

    In a checkout, ``pyproject.toml`` is the only place that states it.
    """
    project = project_file()
    if project is not None:
        described = tomllib.loads(project.read_text(encoding="utf-8"))
        return str(described["project"]["version"])
    return importlib.metadata.version("splitjoin-kit")
