# SPDX-License-Identifier: Apache-2.0
"""STRETCH's Operator 15: forward each tuple of two inputs, once for each of n instances.

It has no state, so it measures what the sharing and the sorting of tuples cost.
"""

from host.operators.meaning import reference_results
from host.operators.windowed import Field, Key, WindowedOperator
from host.reference.operator import Arrival

__all__ = ["CORES", "OPERATOR"]

#: The seed's n.
CORES = 2
FIELDS = (Field("payload", bits=32),)

OPERATOR = WindowedOperator(
    name="forward",
    size=1,
    advance=1,
    fields=FIELDS,
    right_fields=FIELDS,
    keys=[Key(core) for core in range(CORES)],
    key_names=["core"],
    instances="single",
)

if __name__ == "__main__":
    tuples = [Arrival(time, {"payload": 7 * time}, time % 2) for time in range(5)]
    for result in reference_results(OPERATOR, tuples):
        print(result.timestamp, *result.key, *result.values)
