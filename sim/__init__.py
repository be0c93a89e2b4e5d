# SPDX-License-Identifier: Apache-2.0
"""Simulation: libraries, cocotb benches, boards, netlists: ``python -m sim --help``."""

__all__: list[str] = []
