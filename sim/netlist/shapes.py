# SPDX-License-Identifier: Apache-2.0
"""Small accelerators of every engine whose netlists are simulated."""

from hdl.parameters import JoinParameters, KeyField

__all__ = ["SHAPES"]

X = (KeyField(name="x", bits=12),)
XY = (KeyField(name="x", bits=12), KeyField(name="y", bits=9, signed=False))

#: Windows of hundreds of tuples use block RAMs with rows of 18 bits; smaller windows use rows of 36
#: bits. A scan of such a large window would take hundreds of cycles, so an index has it.
SHAPES = {
    "scan equality, 3 cores": JoinParameters.of(
        cores=3, sub_window=20, keys=XY, probes=2, fan_in=2, fan_out=2, comparator="equality",
    ),
    "scan equality, times": JoinParameters.of(
        cores=1, sub_window=37, keys=XY, timestamp_bits=48, probes=2, comparator="equality",
    ),
    "scan digests, 2 cores, times": JoinParameters.of(
        cores=2, sub_window=50, keys=XY, timestamp_bits=48, lanes=3, probes=4, fan_in=2,
        comparator="equality", digest_bits=4,
    ),
    "scan digests": JoinParameters.of(
        cores=1, sub_window=26, keys=XY, lanes=2, probes=2, comparator="equality", digest_bits=5,
    ),
    "scan band digests, 2 cores": JoinParameters.of(
        cores=2, sub_window=50, keys=XY, lanes=3, probes=4, fan_in=2, digest_bits=11,
    ),
    "scan band": JoinParameters.of(cores=1, sub_window=12, keys=X, probes=2),
    "scan band, 3 cores, 4 probes, two fields": JoinParameters.of(
        cores=3, sub_window=20, keys=XY, lanes=2, probes=4, fan_in=2, fan_out=2,
    ),
    "scan band, two fields, times": JoinParameters.of(
        cores=1, sub_window=28, keys=XY, timestamp_bits=48, probes=4,
    ),
    "scan band, 2 cores, times": JoinParameters.of(
        cores=2, sub_window=20, keys=XY, timestamp_bits=48, lanes=2, probes=2, fan_in=2,
    ),
    "scan band, 2 cores, two ports": JoinParameters.of(
        cores=2, sub_window=12, keys=X, probes=2, fan_in=2, result_streams=2,
    ),
    "index equality": JoinParameters.of(
        cores=1, sub_window=40, keys=X, probes=3, engine="index", comparator="equality",
    ),
    "index equality, 2 cores, times, two in a word": JoinParameters.of(
        cores=2, sub_window=40, keys=XY, timestamp_bits=48, probes=3, engine="index",
        comparator="equality", tuples_per_word=2,
    ),
    "index band, 3 cores, times, few buckets": JoinParameters.of(
        cores=3, sub_window=20, keys=XY, timestamp_bits=48, probes=4, fan_in=2, engine="index",
        bucket_bits=2,
    ),
    "index band, times, two in a word": JoinParameters.of(
        cores=1, sub_window=600, keys=XY, timestamp_bits=48, probes=8, engine="index",
        bucket_bits=10, tuples_per_word=2,
    ),
}  # fmt: skip
