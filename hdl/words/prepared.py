# SPDX-License-Identifier: Apache-2.0
"""What the ingress makes of an input word: what regions store, compare and close groups by."""

from amaranth import *
from amaranth.lib import data

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
    "is_own_criterion",
    "prepared_layout",
    "region_word",
    "scheduled_word",
    "stored_layout",
]


def decision_members():
    """What the ingress decides about a word.

    ``close`` (one bit per side of probes): the side's group ends with this word.
    ``star``: … and the group is followed by a star.
    ``disorder``: a tuple before this control word broke the order of time.
    ``illegal``: a word before this one was illegal (:func:`hdl.words.operands.is_legal`).
    ``free``: from here on mergers need not keep the order of cores (only with a mark).
    """
    return {
        "close": unsigned(2),
        "star": unsigned(2),
        "disorder": unsigned(1),
        "illegal": unsigned(1),
        "free": unsigned(1),
    }


def scheduled_word(parameters):
    """An input word, what the ingress decided about it, and what it found out about its value:

    which ``bounds`` it sets, and which ``limits`` it exceeds.
    """
    return data.StructLayout(
        {
            "word": input_word(parameters),
            **decision_members(),
            "bounds": bounds_layout(parameters),
            "limits": limits_layout(parameters),
        }
    )


def cells_layout(parameters):
    """Which buckets of an index a probe visits (:mod:`hdl.index.cells`).

    For an equality it is the one that its own key is stored in, so there is nothing to say.
    Otherwise every field takes up some bits of a bucket's number, in which the probe visits
    ``extent`` more values than the one in ``start``; ``hash`` turns what comes out into the number,
    and ``none`` says that no key can match.
    """
    if parameters.comparator != "band":
        return data.StructLayout({})
    bits = unsigned(parameters.bucket_width)
    extents = {f"extent_{n}": bits for n, _ in enumerate(parameters.keys)}
    return data.StructLayout({"start": bits, "hash": bits, "none": 1, **extents})


def is_own_criterion(parameters):
    """Is the key of a tuple, as it goes to the regions, what it compares stored keys with?"""
    return parameters.engine == "index" and parameters.comparator == "equality"


def prepared_layout(parameters):
    """A tuple as regions get it.

    It is there twice: as ``criterion`` that it compares stored keys with, and as ``key`` that it
    leaves in a ring; where :func:`is_own_criterion`, once. With an index also as the ``bucket``
    that it is stored in, and as the ``cells`` that it looks for matches in.
    """
    criterion = {"criterion": criterion_layout(parameters)}
    index = {}
    if parameters.engine == "index":
        index = {"bucket": unsigned(parameters.bucket_width), "cells": cells_layout(parameters)}
    return data.StructLayout(
        {
            **({} if is_own_criterion(parameters) else criterion),
            "key": stored_layout(parameters),
            "timestamp": unsigned(parameters.timestamp_bits),
            **index,
        }
    )


def region_word(parameters):
    """What the ingress sends down the distribution tree: a scheduled word, its tuple prepared.

    Where tuples go :attr:`side by side <hdl.parameters.JoinParameters.side_by_side>`, there are two
    places instead: for the one of side ``r`` and for that of ``s``. The side ``first`` is that of
    the tuple that comes first, if there are two.
    """
    prepared, control = prepared_layout(parameters), control_layout(parameters)
    if not parameters.side_by_side:
        body = data.UnionLayout({"tuple": prepared, "control": control})
        return data.StructLayout({"kind": InputKind, "body": body, **decision_members()})
    both = data.StructLayout({"r": prepared, "s": prepared})
    body = data.UnionLayout({"both": both, "control": control})
    return data.StructLayout({"kind": InputKind, "first": 1, "body": body, **decision_members()})


def stored_layout(parameters):
    """A key as regions store it: for a band without signs, the sign bit inverted.

    That keeps the order, and comparing numbers without signs is cheaper to simulate and no dearer
    to build. With digests, a key is its ``digest`` and its ``rest`` (:mod:`hdl.comparison.digest`).
    """
    if parameters.digest_bits is not None:
        bits = parameters.digest_bits
        return data.StructLayout({"digest": bits, "rest": parameters.key_bits - bits})
    if parameters.comparator != "band":
        return key_layout(parameters)
    return data.StructLayout({key.name: unsigned(key.bits) for key in parameters.keys})


#: Bits that a packed comparison may have: one word of the processor that simulates it.
PACKED_BITS = 64


def comparison_groups(parameters):
    """Return lists of key fields that a band comparator compares with one subtraction each.

    Every field is followed by a guard bit, which receives its borrow; a group is as wide as
    :data:`PACKED_BITS` allows, and at least one field.
    """
    groups, bits = [], PACKED_BITS + 1
    for key in parameters.keys:
        if bits + key.bits + 1 > PACKED_BITS:
            groups.append([])
            bits = 0
        groups[-1].append(key)
        bits += key.bits + 1
    return groups


def criterion_layout(parameters):
    """What a probe compares stored keys with.

    For a band the stored keys that match, as inclusive ranges with a guard bit above each field: 0
    above every ``low``, 1 above every ``high`` (see :class:`hdl.comparison.comparator.Comparator`);
    otherwise the probe's own key, as it would be stored.
    """
    if parameters.comparator != "band":
        return stored_layout(parameters)
    members = {}
    for n, group in enumerate(comparison_groups(parameters)):
        width = sum(key.bits + 1 for key in group)
        members[f"low_{n}"] = members[f"high_{n}"] = unsigned(width)
    return data.StructLayout(members)
