# SPDX-License-Identifier: Apache-2.0
"""Layouts and sizes of the index engine."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.words.prepared import cells_layout, criterion_layout, ending_layout, pointer_layout

__all__ = [
    "bank_bits",
    "bank_count",
    "closed_layout",
    "entry_layout",
    "found_layout",
    "group_count",
    "head_shape",
    "link_layout",
    "probe_shape",
    "queues_layout",
    "slot_shape",
    "visit_layout",
    "visiting_layout",
    "waiting_layout",
    "walk_layout",
    "walks_layout",
    "walks_waiting",
]

#: Places of the probe table beside those of two full groups, for probes that are in progress.
UNDER_WAY = 224


def group_count(parameters):
    """Number of groups that can be in progress at once; their results are kept apart.

    It is a power of two: as many groups as hold 128 probes, so that the walks of one group overlap
    with those of the next, but at most eight. The limit is 32 if tuples go side by side: a probe
    may then arrive in every cycle, and eight groups of four probes would finish too late.
    """
    most = 32 if parameters.side_by_side else 8
    return min(most, 1 << (128 // min(64, parameters.engine.probes)).bit_length() - 1)


def walks_waiting(parameters):
    """Number of visits whose walks can wait for a gap in the loop of the walker.

    With one probe and one entry per cycle, the share of idle cycles of the ring depends on how many
    walks are waiting when few new ones begin: with 64 the ring is idle in 1 % of the cycles, with
    16 in 5 %.
    """
    return 64 if parameters.side_by_side else 16


def bank_count(parameters):
    """Number of banks of the :class:`hdl.index.heads.HeadTable`, each read once per visit.

    Two for a band, whose probes visit neighbouring cells; one for an equality, whose probes visit
    one bucket.
    """
    return 2 if parameters.bounded and parameters.engine.bucket_bits > 1 else 1


def bank_bits(parameters):
    """Width of a bucket's number within its bank, in bits."""
    return parameters.engine.bucket_bits - ceil_log2(bank_count(parameters))


def slot_shape(parameters):
    """Shape of an entry's place in the ring of a region."""
    return unsigned(ceil_log2(parameters.ring_rows))


def head_shape(parameters):
    """Shape of an entry in the head table: its place, and two bits that tell its age.

    The place and the first age bit are the row with its wrap bit. The second age bit toggles
    whenever rows start again at zero. Without the age bits, a head whose entry was overwritten long
    ago would be mistaken for one of the window, with a probability equal to the window's share of
    the ring, and would cost a read.
    """
    return unsigned(pointer_layout(parameters)["row"].shape.width + 1)


def probe_shape(parameters):
    """Shape of a probe's place in the :class:`hdl.index.probe_table.ProbeTable`."""
    return unsigned(ceil_log2(2 * parameters.engine.probes + UNDER_WAY))


def queues_layout(parameters):
    """Layout of the queue number of each group; there are as many queues as groups."""
    groups = group_count(parameters)
    return data.ArrayLayout(range(groups), groups)


def link_layout(parameters):
    """Layout of what an entry holds beside its key.

    ``link`` is the distance back to the previous entry of the bucket; zero ends the chain.
    ``bucket`` is the bucket of the entry.
    """
    return data.StructLayout(
        {"link": slot_shape(parameters), "bucket": unsigned(parameters.engine.bucket_bits)}
    )


def visiting_layout(parameters):
    """Layout of the buckets that a probe visits.

    ``tail`` is the first row that the probe sees, with wrap bit.
    """
    tail = {"tail": pointer_layout(parameters)["row"].shape}
    if parameters.bounded:
        return data.StructLayout({"cells": cells_layout(parameters), **tail})
    return data.StructLayout({"bucket": unsigned(parameters.engine.bucket_bits), **tail})


def waiting_layout(parameters):
    """Layout of a probe in the probe table; ``size`` is the number of entries that it sees."""
    return data.StructLayout(
        {
            **{name: field.shape for name, field in visiting_layout(parameters)},
            "criterion": criterion_layout(parameters),
            "size": slot_shape(parameters),
        }
    )


def closed_layout(parameters):
    """Layout of a closed group; the ring must be kept from row ``first`` on."""
    row = pointer_layout(parameters)["row"].shape
    return data.StructLayout({"ending": ending_layout(parameters), "first": row})


def visit_layout(parameters):
    """Layout of the buckets that a probe visits at once, at most one in each bank."""
    return data.StructLayout(
        {
            "addresses": data.ArrayLayout(bank_bits(parameters), bank_count(parameters)),
            "tail": pointer_layout(parameters)["row"].shape,
            "probe": probe_shape(parameters),
            "group": range(group_count(parameters)),
        }
    )


def entry_layout(parameters):
    """Layout of an entry to read; it came ``age`` entries after the oldest one that is visible."""
    slot = slot_shape(parameters)
    return data.StructLayout(
        {"place": slot, "age": slot, "bucket": unsigned(parameters.engine.bucket_bits)}
    )


def walks_layout(parameters):
    """Layout of the walks that one visit begins: one entry per bank, all for the same probe.

    The matches of the walks go into ``queue`` (:class:`hdl.index.results.GroupResults`).
    """
    return data.StructLayout(
        {
            "entries": data.ArrayLayout(entry_layout(parameters), bank_count(parameters)),
            "probe": probe_shape(parameters),
            "group": range(group_count(parameters)),
            "queue": range(group_count(parameters)),
        }
    )


def walk_layout(parameters):
    """Layout of a walk: a probe on its way along a chain."""
    return data.StructLayout(
        {
            **{name: field.shape for name, field in entry_layout(parameters)},
            "probe": probe_shape(parameters),
            "group": range(group_count(parameters)),
            "queue": range(group_count(parameters)),
        }
    )


def found_layout(parameters):
    """Layout of a match: the probe's number since the last star of its side, the entry's place."""
    return data.StructLayout(
        {"number": unsigned(parameters.engine.probe_bits), "place": slot_shape(parameters)}
    )
