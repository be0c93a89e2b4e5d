# SPDX-License-Identifier: Apache-2.0
"""The operations beside `stream_join`, for jobs on a cluster and by way of Spark Connect."""

from spark_offload import asof_join, join_aggregate, overlap_join, stream_aggregate

__all__ = ["expected_rows", "run_operations"]

LEFT, RIGHT = range(0, 200, 2), range(1, 200, 2)
#: How long an interval lasts, and how far apart two rows of a window may be.
LENGTH, WITHIN = 5, 30
WINDOW, ADVANCE = 40, 20


def run_operations(spark, device):
    """Return the sorted rows of each operation; its joins run on the device."""
    left = spark.range(0, 200, 2).selectExpr("id as t", f"id + {LENGTH} as u", "id % 7 as k")
    right = spark.range(1, 200, 2).selectExpr("id as t", f"id + {LENGTH} as u", "id % 7 as k")
    ends = ("t", "u")
    frames = {
        "asof": asof_join(left, right, time="t", on="k").select("t", "t_right"),
        "overlap": overlap_join(
            left, right, left_interval=ends, on="k", longest=LENGTH, device=device
        ).select("t", "t_right"),
        "aggregate": stream_aggregate(
            left, time="t", window=WINDOW, advance=ADVANCE, on="k",
            aggregates={"n": "count", "total": "sum:u"},
        ),
        "matches": join_aggregate(
            left, right, on="k", time="t", within=WITHIN, device=device,
            aggregates={"n": "count", "last": "max:u"},
        ).select("t", "n", "last"),
    }  # fmt: skip
    return {name: sorted(map(list, frame.collect()), key=str) for name, frame in frames.items()}


def expected_rows():
    """Return what :func:`run_operations` returns, computed by looking at every pair."""
    matches = [[(l, r) for r in RIGHT if l % 7 == r % 7] for l in LEFT]
    windows = [(start, start + WINDOW) for start in range(-WINDOW, 200, ADVANCE)]
    counted = [
        [start, end, key, len(times), sum(time + LENGTH for time in times)]
        for start, end in windows
        for key in range(7)
        if (times := [t for t in LEFT if start <= t < end and t % 7 == key])
    ]
    near = [
        (l, [r + LENGTH for _, r in pairs if abs(l - r) <= WITHIN])
        for l, pairs in zip(LEFT, matches, strict=True)
    ]
    rows = {
        "asof": [
            [l, max((r for _, r in pairs if r <= l), default=None)]
            for l, pairs in zip(LEFT, matches, strict=True)
        ],
        "overlap": [[l, r] for pairs in matches for l, r in pairs if abs(l - r) <= LENGTH],
        "aggregate": counted,
        "matches": [[l, len(found), max(found, default=None)] for l, found in near],
    }
    return {name: sorted(found, key=str) for name, found in rows.items()}
