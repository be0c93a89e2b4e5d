# SPDX-License-Identifier: Apache-2.0
"""Named parameters of accelerators, ``python -m hdl generate --preset NAME``."""

from .index.engine import Index
from .parameters import JoinParameters, KeyField, Window
from .predicates.band import Band
from .predicates.equality import Equality
from .scan.digests import DigestScan
from .scan.engine import Lanes, Scan

__all__ = ["PRESETS", "TWINS"]

X32 = (KeyField(name="x", bits=32),)
XY16 = (KeyField(name="x", bits=16), KeyField(name="y", bits=16))
XY32 = (KeyField(name="x", bits=32), KeyField(name="y", bits=32))

#: The default device with an index, in a size that fits an LFE5U-85F: the largest windows, with one
#: bucket for each tuple. Twice as many buckets would take more block RAMs than there are.
ECP5_DEFAULT = JoinParameters(
    keys=XY32,
    window=Window(cores=1, sub_window=7_964, timestamp_bits=48),
    engine=Index(predicate=Band(), probes=64, bucket_bits=13, tuples_per_word=2),
)

#: A whole LFE5U-85F, with all of its block RAMs. There are few large cores, because each core has
#: logic of its own besides its lanes.
ECP5_EQUALITY = JoinParameters(
    keys=X32,
    window=Window(cores=4, sub_window=8_128),
    engine=DigestScan(predicate=Equality(), read=Lanes(lanes=16), probes=14, digest_bits=16),
    fan_in=2,
)
ECP5_BAND = JoinParameters(
    keys=XY16,
    window=Window(cores=4, sub_window=13_208),
    engine=Scan(predicate=Band(), read=Lanes(lanes=26), probes=2),
    fan_in=2,
)

DEMO = JoinParameters(
    keys=XY32,
    window=Window(cores=4, sub_window=4096, timestamp_bits=48),
    engine=Scan(predicate=Band(), read=Lanes(lanes=4), probes=8),
)
#: With a star at least every fourth probe.
TINY = JoinParameters(
    keys=(KeyField(name="x", bits=8),),
    window=Window(cores=2, sub_window=8, timestamp_bits=16),
    engine=Scan(predicate=Band(), probe_bits=2),
)

#: Named configurations, `python -m hdl generate --preset NAME`.
PRESETS = {
    # Small enough for a unit test, or for a first look at the Verilog.
    "tiny": TINY,
    # The default device of the demo, `host join` and Spark: two fields, both kinds of window.
    "demo": DEMO,
    # `demo` whose cores may fail, and which sends results in rounds where it is asked to. A core is
    # taken for failed after twice the silence that one of this shape may need.
    "demo-gated": DEMO.with_(failure_cycles=1 << 15, rounds=True),
    # The same two as join aggregates: each left tuple leaves with count, sum, least and greatest
    # value of its matches.
    "tiny-join-aggregate": TINY.with_(probes=2, value_bits=8),
    "demo-join-aggregate": DEMO.with_(value_bits=32),
    # As `demo`, for predicates with bounds. It is `ecp5-default` with larger windows, and with four
    # buckets for each tuple so that chains stay short in grids too.
    "demo-index": ECP5_DEFAULT.with_(sub_window=1 << 16, bucket_bits=18),
    # The plainest configuration of the paper: sixteen cores, one comparator per region.
    "paper": JoinParameters(
        keys=XY16,
        window=Window(cores=16, sub_window=504),
        engine=Scan(predicate=Band()),
        fan_out=2,
        fan_in=2,
    ),
    "ecp5-equality": ECP5_EQUALITY,
    # The same with more comparators of fewer bits. A comparator of 13 bits takes eight LUTs, one of
    # 14 to 16 bits takes ten. More candidates agree by chance. In windows of half the size, whole
    # keys of four lanes share a block RAM, and the block RAMs suffice for twice as many lanes.
    "ecp5-equality-wide": ECP5_EQUALITY.with_(
        sub_window=3_968, lanes=32, probes=13, digest_bits=13
    ),
    # Whole keys, which digests are measured against. Those of a band are `ecp5-band`.
    "ecp5-equality-whole": ECP5_EQUALITY.with_(
        sub_window=13_208, lanes=26, probes=5, digest_bits=None
    ),
    # An index with the largest ring that the block RAMs allow.
    "ecp5-index": JoinParameters(
        keys=X32,
        window=Window(cores=1, sub_window=16_250),
        engine=Index(
            predicate=Equality(), probes=16, probe_bits=10, bucket_bits=14, tuples_per_word=2
        ),
        fan_in=2,
    ),
    "ecp5-band": ECP5_BAND,
    # `ecp5-band` with digests: four times as many comparators, each of them a quarter as large.
    "ecp5-band-digest": ECP5_BAND.with_(sub_window=7_620, lanes=15, probes=14, digest_bits=16),
    # The same scans with 48-bit timestamps. The deadlines of a sub-window of up to 2,048 tuples
    # take six of a region's 26 block RAMs, those of up to 1,024 three. So windows are smaller,
    # which leaves more block RAMs to lanes. Deadlines also take 6,600 LUTs, for which the digests
    # of a band have two bits fewer.
    "ecp5-equality-wide-timed": ECP5_EQUALITY.with_(
        sub_window=1_680, timestamp_bits=48, lanes=28, probes=14, digest_bits=13
    ),
    "ecp5-equality-whole-timed": ECP5_EQUALITY.with_(
        sub_window=1_012, timestamp_bits=48, lanes=23, probes=5, digest_bits=None
    ),
    "ecp5-band-timed": ECP5_BAND.with_(sub_window=2_044, timestamp_bits=48, lanes=14, probes=4),
    "ecp5-band-digest-timed": ECP5_BAND.with_(
        sub_window=1_860, timestamp_bits=48, lanes=15, probes=14, digest_bits=14
    ),
    "ecp5-default": ECP5_DEFAULT,
    # What fits boards beside their UART: the smallest devices, and those of 24,000 and 44,000 LUTs.
    "board-small": JoinParameters(
        keys=(KeyField(name="x", bits=16),),
        window=Window(cores=1, sub_window=126),
        engine=Scan(predicate=Equality()),
    ),
    "board-scan": JoinParameters(
        keys=XY16,
        window=Window(cores=2, sub_window=1_016, timestamp_bits=32),
        engine=Scan(predicate=Band(), read=Lanes(lanes=2), probes=2),
        fan_in=2,
    ),
    # With one tuple more, its rings have 8,192 rows, and take 142 block RAMs in place of 96. The
    # LFE5U-45F has 108.
    # Words of exactly eight bytes, for a board whose link carries bytes by the clock of the
    # accelerator.
    "board-fast": JoinParameters(
        keys=X32,
        window=Window(cores=1, sub_window=3_868, timestamp_bits=30),
        engine=Index(predicate=Equality(), probes=16, bucket_bits=12),
    ),
    "board-index": ECP5_DEFAULT.with_(sub_window=3_868, bucket_bits=12, timestamp_bits=32),
}

#: For each preset that is only simulated, the preset that is routed in its place: the same
#: accelerator with windows that fit a device. `demo` has none. `ecp5-band` has its engine and its
#: comparator, but half the field width, no timestamps, and other lanes and probes, so neither
#: cycles nor clock would be those of `demo`.
TWINS = {"demo-index": "ecp5-default"}
