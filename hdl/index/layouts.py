# SPDX-License-Identifier: Apache-2.0
"""What travels inside the index engine."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.layouts import cells_layout, criterion_layout, ending_layout, pointer_layout, stored_layout

__all__ = [
    "GROUPS",
    "closed_layout",
    "entry_layout",
    "found_layout",
    "lookup_layout",
    "slot_shape",
    "walk_layout",
    "waiting_layout",
]

#: Groups whose probes may be under way at once; their results are kept apart.
GROUPS = 2


def slot_shape(parameters):
    """Place of an entry in a region's ring."""
    return unsigned(ceil_log2(parameters.ring_rows))


def entry_layout(parameters):
    """A stored tuple: its key, its bucket, and how far back the one before it in the bucket is.

    A ``link`` of zero ends the chain.
    """
    return data.StructLayout(
        {
            "key": stored_layout(parameters),
            "bucket": unsigned(parameters.bucket_width),
            "link": slot_shape(parameters),
        }
    )


def waiting_layout(parameters):
    """A probe that waits for its group to close: it sees ``size`` entries from ``tail`` on."""
    slot = slot_shape(parameters)
    return data.StructLayout(
        {
            "criterion": criterion_layout(parameters),
            "bucket": unsigned(parameters.bucket_width),
            "cells": cells_layout(parameters),
            "tail": slot,
            "size": slot,
        }
    )


def closed_layout(parameters):
    """A group that has closed; the ring must be kept from row ``first`` on."""
    row = pointer_layout(parameters)["row"].shape
    return data.StructLayout({"ending": ending_layout(parameters), "first": row})


def lookup_layout(parameters):
    """A bucket that a probe visits: the ``probe``-th one of its ``group``."""
    slot = slot_shape(parameters)
    return data.StructLayout(
        {
            "criterion": criterion_layout(parameters),
            "bucket": unsigned(parameters.bucket_width),
            "tail": slot,
            "size": slot,
            "probe": unsigned(parameters.probe_bits),
            "group": range(GROUPS),
        }
    )


def walk_layout(parameters):
    """A probe on its way along a chain.

    ``place`` is the entry to read; it was stored ``age`` entries after the oldest one that the
    probe sees. The first ``size`` entries are those that it sees.
    """
    slot = slot_shape(parameters)
    return data.StructLayout(
        {
            "criterion": criterion_layout(parameters),
            "bucket": unsigned(parameters.bucket_width),
            "place": slot,
            "age": slot,
            "size": slot,
            "probe": unsigned(parameters.probe_bits),
            "group": range(GROUPS),
        }
    )


def found_layout(parameters):
    """A match: the probe's number in its group, and the place of the entry."""
    return data.StructLayout(
        {"probe": unsigned(parameters.probe_bits), "place": slot_shape(parameters)}
    )
