# SPDX-License-Identifier: Apache-2.0
"""Medians of each sensor in a window, whose state is a sorted list: an operator of functions."""

from bisect import insort

import pyarrow as pa

from host import operate
from host.operators.own import OwnOperator

__all__ = ["OPERATOR"]


def insert(windows, arrival):
    """f_U: put a reading into the sorted list of its window; put nothing out yet."""
    readings = list(windows[0].state or [])
    insort(readings, arrival.payload["celsius"])
    return [readings], []


def median(windows):
    """f_O: the middle reading of a window that has ended."""
    (window,) = windows
    middle = window.state[(len(window.state) - 1) // 2]
    return [{"sensor": window.key, "median": middle, "readings": len(window.state)}]


OPERATOR = OwnOperator(
    name="medians",
    size=60,
    advance=20,
    keys=lambda arrival: [arrival.payload["sensor"]],
    update=insert,
    output=median,
    schema=pa.schema([("sensor", pa.string()), ("median", pa.float64()), ("readings", pa.int64())]),
)

if __name__ == "__main__":
    rows = [(0, "roof", 18.5), (5, "cellar", 9.0), (15, "roof", 21.0), (70, "roof", 19.5)]
    names = ("timestamp", "sensor", "celsius")
    readings = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    for result in operate(readings, OPERATOR).to_pylist():
        print(*result.values())
