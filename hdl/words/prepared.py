# SPDX-License-Identifier: Apache-2.0
"""Words between ingress and regions, with prepared tuples, and windows as an engine sees them."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from .inputs import InputKind, bounds_layout, control_layout, input_word, limits_layout
from .results import punctuation_layout
from .values import rounds_shape

__all__ = [
    "activity_layout",
    "cells_layout",
    "criterion_layout",
    "decision_members",
    "ending_layout",
    "is_own_criterion",
    "pointer_layout",
    "prepared_layout",
    "region_word",
    "ring_pointer",
    "scheduled_word",
    "span_layout",
    "stored_layout",
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
    ``rounds``, with rounds: the code of their size from here on (:mod:`hdl.words.values`).
    """
    rounds = {"rounds": rounds_shape(parameters)} if parameters.engine.rounds else {}
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
    if not parameters.bounded:
        return data.StructLayout({})
    bits = unsigned(parameters.engine.bucket_bits)
    extents = {f"extent_{n}": bits for n, _ in enumerate(parameters.bounded)}
    return data.StructLayout({"start": bits, "hash": bits, "none": 1, **extents})


def is_own_criterion(parameters):
    """Return whether the key that regions receive of a tuple is also its criterion as a probe."""
    return parameters.engine.own_criterion and not parameters.bounded


def prepared_layout(parameters):
    """Return the layout of a tuple as regions receive it.

    ``criterion`` is what the tuple, as a probe, compares stored keys with. ``key`` is what is
    stored of the tuple. Where the two are the same (:func:`is_own_criterion`), there is only
    ``key``. An index also needs the ``bucket`` in which the tuple is stored, and the ``cells`` that
    it visits as a probe. A join aggregate stores a ``value`` beside the key.
    """
    criterion = {"criterion": criterion_layout(parameters)}
    return data.StructLayout(
        {
            **({} if is_own_criterion(parameters) else criterion),
            "key": stored_layout(parameters),
            "timestamp": unsigned(parameters.timestamp_bits),
            **parameters.engine.beside(parameters),
            **parameters.engine.prepared_members(parameters),
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
    """Return the layout of a key as regions store it."""
    return parameters.rule.stored_layout(parameters)


def criterion_layout(parameters):
    """Return the layout of what a probe compares stored keys with."""
    return parameters.rule.criterion_layout(parameters)


def ring_pointer(lanes, rows):
    """Return the layout of a position in a ring of so many lanes and rows.

    ``row`` has one more bit than the ring needs, the wrap bit. So a full ring differs from an empty
    one, and the distance between two pointers is their difference.
    """
    return data.StructLayout(
        {"lane": unsigned(ceil_log2(lanes)), "row": unsigned(ceil_log2(rows) + 1)}
    )


def pointer_layout(parameters):
    """Return the layout of a position in a region's ring."""
    return ring_pointer(parameters.engine.lanes, parameters.ring_rows)


def span_layout(parameters):
    """Return the layout of the window as one probe sees it.

    It begins with ``tail``, the position of the oldest key, and ends before ``head``.
    """
    pointer = pointer_layout(parameters)
    return data.StructLayout({"tail": pointer, "head": pointer})


def ending_layout(parameters):
    """Return the layout of what follows the results of a group.

    ``count`` is the number of probes in the group. ``star`` and ``mark`` say which of the two
    follow the group. With rounds, ``rounds`` is the code of their size (:mod:`hdl.words.values`).
    """
    return data.StructLayout(
        {
            "count": range(parameters.engine.probes + 1),
            "star": unsigned(1),
            "mark": unsigned(1),
            "punctuation": punctuation_layout(parameters),
            **({"rounds": rounds_shape(parameters)} if parameters.engine.rounds else {}),
        }
    )


def activity_layout(parameters, regions=1):
    """Return the layout of what ``regions`` regions did in one cycle, summed over them.

    ``comparisons`` counts comparisons of a probe with a key of its window. ``busy`` counts regions
    that read a row. ``stalled`` counts regions that could not read a row because of back-pressure
    on their results. With parity, ``wrong`` counts regions that had read a flipped bit. With
    external memory, ``read`` and ``written`` count beats that regions read and wrote, ``waiting``
    regions that waited for a row of their pass, and ``refused`` regions whose memory answered with
    an error.
    """
    return data.StructLayout(
        {
            "comparisons": range(parameters.engine.lanes * parameters.engine.probes * regions + 1),
            "busy": range(regions + 1),
            "stalled": range(regions + 1),
            **({"wrong": range(regions + 1)} if parameters.engine.parity else {}),
            **dict.fromkeys(parameters.engine.events.values(), range(regions + 1)),
        }
    )
