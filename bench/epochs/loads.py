# SPDX-License-Identifier: Apache-2.0
"""Accelerators and windows of joins under many epochs."""

from hdl.parameters import JoinParameters, KeyField
from host.reference.window import CountWindow, TimeWindow

__all__ = ["ENGINES", "WINDOWS"]

FIELDS = (KeyField(name="x", bits=16),)
#: Accelerators. A window of 24 tuples fits one core, whatever epochs came before.
ENGINES = {
    "scan": JoinParameters.of(
        cores=4, sub_window=32, lanes=2, probes=4, keys=FIELDS, timestamp_bits=32, probe_bits=4
    ),
    "index": JoinParameters.of(
        engine="index", cores=3, sub_window=32, probes=4, keys=FIELDS, timestamp_bits=32,
        probe_bits=4, bucket_bits=4, comparator="equality",
    ),
}  # fmt: skip
WINDOWS = {"count-based": CountWindow(24), "time-based": TimeWindow(40)}
