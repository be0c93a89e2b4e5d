# SPDX-License-Identifier: Apache-2.0
"""Words between ingress and regions: decisions about a word, and tuples prepared for the engine."""

from amaranth import *
from amaranth.lib import data

from .cells import has_cells, rounds_shape, stored_value_shape
from .inputs import (
    InputKind,
    bounds_layout,
    control_layout,
    input_word,
    key_layout,
    limits_layout,
)

__all__ = [
    "cells_layout",
    "comparison_groups",
    "criterion_layout",
    "decision_members",
    "field_ranges",
    "is_own_criterion",
    "prepared_layout",
    "region_word",
    "scheduled_word",
    "stored_layout",
    "verified_layouts",
]


def decision_members(parameters):
    """Return the members that hold the decisions of the ingress about a word.

    ``close`` (one bit per side): this word ends the open group of the side's probes.
    ``star`` (one bit per side): a star follows that group.
    ``disorder``: since the last CLEAR, a tuple before this control word went back in time.
    ``illegal``: since the last CLEAR, a word before this one was illegal
      (:func:`hdl.words.operands.is_legal`).
    ``free``: from here on, mergers need not keep the order of cores; it takes effect with a mark.
    ``storing`` (per side): the core that stores a tuple of this side.
    ``leaving`` (per side): the core whose oldest tuple of this side leaves for that tuple, if the
      side's bit of ``leaves`` is set. These three have a meaning for a tuple of that side only.
    ``rounds``, with rounds: the code of their size from here on (:mod:`hdl.words.cells`).
    """
    rounds = {"rounds": rounds_shape(parameters)} if parameters.rounds else {}
    cores = data.ArrayLayout(range(max(2, parameters.cores)), 2)
    return {
        "close": unsigned(2),
        "star": unsigned(2),
        "disorder": unsigned(1),
        "illegal": unsigned(1),
        "free": unsigned(1),
        "storing": cores,
        "leaving": cores,
        "leaves": unsigned(2),
        **rounds,
    }


def scheduled_word(parameters):
    """Return the layout of a scheduled word: an input word with the decisions of the ingress.

    ``bounds`` are the bounds that the word sets, and ``limits`` are the limits that its value
    exceeds.
    """
    return data.StructLayout(
        {
            "word": input_word(parameters),
            **decision_members(parameters),
            "bounds": bounds_layout(parameters),
            "limits": limits_layout(parameters),
        }
    )


def cells_layout(parameters):
    """Return the layout of the buckets of an index that a probe visits (:mod:`hdl.index.cells`).

    For an equality it is empty, because a probe visits the bucket in which its own key is stored.

    For a band, every field has some bits of the bucket number. ``start`` holds the first value of
    these bits for all fields together. ``extent_n`` is how many further values field ``n`` has. The
    number of a bucket is such a combination of values, with ``hash`` added by exclusive or.
    ``none`` says that no key can match.
    """
    if parameters.comparator != "band":
        return data.StructLayout({})
    bits = unsigned(parameters.bucket_width)
    extents = {f"extent_{n}": bits for n, _ in enumerate(parameters.keys)}
    return data.StructLayout({"start": bits, "hash": bits, "none": 1, **extents})


def is_own_criterion(parameters):
    """Return whether the key that regions receive of a tuple is also its criterion as a probe."""
    return parameters.engine == "index" and parameters.comparator == "equality"


def prepared_layout(parameters):
    """Return the layout of a tuple as regions receive it.

    ``criterion`` is what the tuple, as a probe, compares stored keys with. ``key`` is what is
    stored of the tuple. Where the two are the same (:func:`is_own_criterion`), there is only
    ``key``. An index also needs the ``bucket`` in which the tuple is stored, and the ``cells`` that
    it visits as a probe. A join aggregate stores a ``value`` beside the key.
    """
    criterion = {"criterion": criterion_layout(parameters)}
    value = {"value": stored_value_shape(parameters)} if parameters.is_aggregated else {}
    index = {}
    if parameters.engine == "index":
        index = {"bucket": unsigned(parameters.bucket_width), "cells": cells_layout(parameters)}
    return data.StructLayout(
        {
            **({} if is_own_criterion(parameters) else criterion),
            "key": stored_layout(parameters),
            "timestamp": unsigned(parameters.timestamp_bits),
            **value,
            **index,
        }
    )


def region_word(parameters):
    """Return the layout of a word in the distribution tree: a scheduled word with prepared tuples.

    If a region takes two tuples :attr:`side by side <hdl.parameters.JoinParameters.side_by_side>`,
    the body has a place for a tuple of side ``r`` and one for a tuple of side ``s``. If both are
    there, the tuple of side ``first`` comes first.
    """
    prepared, control = prepared_layout(parameters), control_layout(parameters)
    if not parameters.side_by_side:
        body = data.UnionLayout({"tuple": prepared, "control": control})
        return data.StructLayout({"kind": InputKind, "body": body, **decision_members(parameters)})
    both = data.StructLayout({"r": prepared, "s": prepared})
    body = data.UnionLayout({"both": both, "control": control})
    decisions = decision_members(parameters)
    return data.StructLayout({"kind": InputKind, "first": 1, "body": body, **decisions})


def stored_layout(parameters):
    """Return the layout of a key as regions store it.

    For a band, the fields are unsigned: the sign bit of a signed field is inverted, which keeps the
    order. Comparing unsigned numbers is cheaper to simulate and costs no more hardware.

    With digests, a key of an equality consists of its ``digest`` and its ``rest``
    (:mod:`hdl.comparison.comparator`). A key of a band has its ``digest`` beside its fields: the
    lowest bits of the cell numbers, one part below the other (:mod:`hdl.words.cells`).
    """
    if has_cells(parameters):
        fields = {name: field.shape for name, field in stored_layout(parameters.whole)}
        return data.StructLayout({"digest": parameters.digest_bits, **fields})
    if parameters.digest_bits is not None:
        bits = parameters.digest_bits
        return data.StructLayout({"digest": bits, "rest": parameters.key_bits - bits})
    if parameters.comparator != "band":
        return key_layout(parameters)
    return data.StructLayout({key.name: unsigned(key.bits) for key in parameters.keys})


#: Most bits of a packed comparison: one word of the processor that runs the simulation.
PACKED_BITS = 64


def comparison_groups(parameters):
    """Return groups of key fields that a band comparator subtracts together from each bound.

    Every field is followed by a guard bit, which receives its borrow. A group has as many fields as
    :data:`PACKED_BITS` allows, and at least one.
    """
    groups, bits = [], PACKED_BITS + 1
    for key in parameters.keys:
        if bits + key.bits + 1 > PACKED_BITS:
            groups.append([])
            bits = 0
        groups[-1].append(key)
        bits += key.bits + 1
    return groups


def field_ranges(parameters, criterion):
    """Return the lowest and the highest stored value that a probe of a band matches, by field."""
    ranges = {}
    for n, group in enumerate(comparison_groups(parameters)):
        offset = 0
        for field in group:
            bits = slice(offset, offset + field.bits)
            ranges[field.name] = (criterion[f"low_{n}"][bits], criterion[f"high_{n}"][bits])
            offset += field.bits + 1
    return ranges


def verified_layouts(parameters):
    """Return the layouts of what a verifier compares of a stored key and of a probe.

    These are the stored key and the criterion without the digests that only a pass compares. Of an
    equality, the digest is a part of the key.
    """
    compared = parameters.whole if has_cells(parameters) else parameters
    return stored_layout(compared), criterion_layout(compared)


def criterion_layout(parameters):
    """Return the layout of what a probe compares stored keys with.

    For a band, it is the inclusive ranges of the keys that match, from ``low_n`` to ``high_n`` for
    every group. There is a guard bit above each field, 0 in every ``low_n`` and 1 in every
    ``high_n`` (see :class:`hdl.comparison.comparator.Comparator`). For other comparators, it is the
    probe's own key as it would be stored.

    With digests, a band also has the ``digest`` of the probe
    (:func:`hdl.words.cells.probe_digest`), and ``every``: a range is wider than its cells, so any
    key may match.
    """
    if has_cells(parameters):
        ranges = {name: field.shape for name, field in criterion_layout(parameters.whole)}
        return data.StructLayout({"digest": parameters.digest_bits, "every": 1, **ranges})
    if parameters.comparator != "band":
        return stored_layout(parameters)
    members = {}
    for n, group in enumerate(comparison_groups(parameters)):
        width = sum(key.bits + 1 for key in group)
        members[f"low_{n}"] = members[f"high_{n}"] = unsigned(width)
    return data.StructLayout(members)
