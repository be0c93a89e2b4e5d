# SPDX-License-Identifier: Apache-2.0
"""The name of what is routed or estimated, for files and titles of reports."""

from hdl.aggregate.presets import AGGREGATE_PRESETS
from hdl.presets import PRESETS

__all__ = ["design_name"]


def design_name(parameters, preset):
    """Return a name for ``parameters``: that of the preset, with every value that differs."""
    base = (PRESETS | AGGREGATE_PRESETS)[preset].to_dict() if preset else {}
    parts = [preset or "custom"]
    for name, value in parameters.to_dict().items():
        if name == "operator":
            text = value["name"]
        elif name in ("comparator", "architecture"):
            text = value
        elif name == "keys" and not isinstance(value, int):
            text = "_".join(f"{key['name']}{key['bits']}" for key in value)
        else:
            text = f"{name.replace('_', '')}{value}"
        if base.get(name) != value and value not in (None, "scan"):
            parts.append(text)
    return "-".join(parts)
