# SPDX-License-Identifier: Apache-2.0
"""What travels inside the index engine."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.words.prepared import cells_layout, criterion_layout
from hdl.words.spans import ending_layout, pointer_layout

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

#: Probes under way or on their way, beside those of two full groups.
UNDER_WAY = 224


def group_count(parameters):
    """Groups whose probes may be under way at once; their results are kept apart.

    A power of two, up to eight: as many as hold 128 probes, so that the walks of one group leave
    time for those of the next. Up to 32 where tuples go side by side: a probe may come in every
    cycle then, and eight groups of four are through too late.
    """
    most = 32 if parameters.side_by_side else 8
    return min(most, 1 << (128 // min(64, parameters.probes)).bit_length() - 1)


def walks_waiting(parameters):
    """Visits whose walks can wait until there is a gap.

    With a probe and an entry in every cycle, how often the ring is idle depends on how many walks
    wait when few begin: 64 leave 1 % of the cycles idle, 16 leave 5 %.
    """
    return 64 if parameters.side_by_side else 16


def bank_count(parameters):
    """Banks of the :class:`hdl.index.head_table.HeadTable`: heads that are looked up at once.

    Two for a band, whose probes visit neighbouring cells; one where a probe visits one bucket.
    """
    return 2 if parameters.comparator == "band" and parameters.bucket_width > 1 else 1


def bank_bits(parameters):
    """Bits that tell the buckets of one bank apart."""
    return parameters.bucket_width - ceil_log2(bank_count(parameters))


def slot_shape(parameters):
    """Place of an entry in a region's ring."""
    return unsigned(ceil_log2(parameters.ring_rows))


def head_shape(parameters):
    """What the head table holds of an entry: its place, and two bits that tell how old it is.

    Place and the first of these bits are the row with its wrap bit; the other one changes whenever
    rows begin again at zero. Without them, a head whose entry was overwritten long ago would be
    taken for one of the window as often as the window takes up the ring, and cost a read.
    """
    return unsigned(pointer_layout(parameters)["row"].shape.width + 1)


def probe_shape(parameters):
    """Place of a probe in the :class:`hdl.index.probe_table.ProbeTable`."""
    return unsigned(ceil_log2(2 * parameters.probes + UNDER_WAY))


def queues_layout(parameters):
    """In which queue the matches of each group wait; there are as many as groups at the most."""
    groups = group_count(parameters)
    return data.ArrayLayout(range(groups), groups)


def link_layout(parameters):
    """What an entry holds beside its key: its bucket, and how far back the one before it is.

    A ``link`` of zero ends the chain.
    """
    return data.StructLayout(
        {"link": slot_shape(parameters), "bucket": unsigned(parameters.bucket_width)}
    )


def visiting_layout(parameters):
    """Which buckets a probe visits, and from which row on it sees entries, with a wrap bit."""
    tail = {"tail": pointer_layout(parameters)["row"].shape}
    if parameters.comparator == "band":
        return data.StructLayout({"cells": cells_layout(parameters), **tail})
    return data.StructLayout({"bucket": unsigned(parameters.bucket_width), **tail})


def waiting_layout(parameters):
    """A probe; it sees ``size`` entries."""
    return data.StructLayout(
        {
            **{name: field.shape for name, field in visiting_layout(parameters)},
            "criterion": criterion_layout(parameters),
            "size": slot_shape(parameters),
        }
    )


def closed_layout(parameters):
    """A group that has closed; the ring must be kept from row ``first`` on."""
    row = pointer_layout(parameters)["row"].shape
    return data.StructLayout({"ending": ending_layout(parameters), "first": row})


def visit_layout(parameters):
    """Buckets that a probe visits at once, one in every bank at most."""
    return data.StructLayout(
        {
            "addresses": data.ArrayLayout(bank_bits(parameters), bank_count(parameters)),
            "tail": pointer_layout(parameters)["row"].shape,
            "probe": probe_shape(parameters),
            "group": range(group_count(parameters)),
        }
    )


def entry_layout(parameters):
    """An entry to read; it was stored ``age`` entries after the oldest one that the probe sees."""
    slot = slot_shape(parameters)
    return data.StructLayout(
        {"place": slot, "age": slot, "bucket": unsigned(parameters.bucket_width)}
    )


def walks_layout(parameters):
    """The walks that one visit begins: an entry in every bank, for the same probe.

    Their matches go into a ``queue`` (:class:`hdl.index.group_results.GroupResults`).
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
    """A probe on its way along a chain."""
    return data.StructLayout(
        {
            **{name: field.shape for name, field in entry_layout(parameters)},
            "probe": probe_shape(parameters),
            "group": range(group_count(parameters)),
            "queue": range(group_count(parameters)),
        }
    )


def found_layout(parameters):
    """A match: the number of the probe since its side's last star, and the place of the entry."""
    return data.StructLayout(
        {"number": unsigned(parameters.probe_bits), "place": slot_shape(parameters)}
    )
