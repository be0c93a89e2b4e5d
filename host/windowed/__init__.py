# SPDX-License-Identifier: Apache-2.0
"""Windowed operators, the seed's O+: aggregates and joins described as data."""

from host.windowed.operator import WindowedOperator
from host.windowed.parts import Field, Key, Output
from host.windowed.reduction import Reduction

__all__ = ["Field", "Key", "Output", "Reduction", "WindowedOperator"]
