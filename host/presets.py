# SPDX-License-Identifier: Apache-2.0
"""The configurations that the default devices are built from."""

__all__ = ["PRESETS"]

PRESETS = {"scan": "demo", "index": "demo-index"}
"""Names of presets of ``python -m sim build``, by engine."""
