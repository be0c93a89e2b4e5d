# SPDX-License-Identifier: Apache-2.0
"""Simulation: the simulator library, the cocotb benches, the figures: ``python -m sim --help``."""

__all__: list[str] = []
