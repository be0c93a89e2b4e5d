# SPDX-License-Identifier: Apache-2.0
"""Integer expressions of windowed operators: one text for hardware, NumPy and Python."""

from host.expressions.evaluation import evaluate
from host.expressions.expression import Expression, Source
from host.expressions.grammar import FUNCTIONS, OPERATIONS
from host.expressions.interval import INT64, Interval, interval
from host.expressions.trace import Record, Symbol, maximum, minimum, where

__all__ = [
    "FUNCTIONS",
    "INT64",
    "OPERATIONS",
    "Expression",
    "Interval",
    "Record",
    "Source",
    "Symbol",
    "evaluate",
    "interval",
    "maximum",
    "minimum",
    "where",
]
