# SPDX-License-Identifier: Apache-2.0
"""The hash that identifies an accelerator."""

from collections.abc import Mapping
import hashlib
import json
from typing import Any

__all__ = ["digest"]

#: Parts of a manifest that its hash does not cover.
_UNHASHED = ("hash", "tools", "clock", "shells")


def digest(values: Mapping[str, Any], verilog: str) -> str:
    """Return the hash that a manifest with these ``values`` must contain.

    The hash covers the manifest without ``hash``, ``tools``, ``clock`` and ``shells``, as JSON with
    sorted keys and no spaces, then a zero byte, then the Verilog.
    """
    rest = {name: value for name, value in values.items() if name not in _UNHASHED}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{text}\0{verilog}".encode()).hexdigest()
