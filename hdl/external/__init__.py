# SPDX-License-Identifier: Apache-2.0
"""Windows in external memory: rows of keys are written and read through AXI4."""

__all__ = []
