# SPDX-License-Identifier: Apache-2.0
"""All words that travel through the accelerator, in one place.

The manifest of a bundle is written from these layouts, so host code never repeats an offset.
"""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from .tree import tree_levels

__all__ = [
    "Control",
    "InputKind",
    "ResultKind",
    "activity_layout",
    "bound_shape",
    "bounds_layout",
    "cells_layout",
    "control_layout",
    "comparison_groups",
    "coordinate_layout",
    "core_shape",
    "criterion_layout",
    "decision_members",
    "ending_layout",
    "input_word",
    "is_own_criterion",
    "key_layout",
    "limits_layout",
    "node_result",
    "operation_indices",
    "pair_layout",
    "pointer_layout",
    "prepared_layout",
    "punctuation_layout",
    "region_word",
    "result_word",
    "scheduled_word",
    "span_layout",
    "stored_layout",
    "tuple_layout",
    "value_ranges",
]


class InputKind(enum.Enum, shape=2):
    """What an input word is."""

    R = 0
    S = 1
    CONTROL = 2


class Control(enum.Enum, shape=4):
    """Operation of a control word; ``index`` and ``value`` are its operands."""

    #: Empty both windows, restart all ordinals, forget faults. Configuration stays. Answers a mark.
    CLEAR = 0
    #: Close open groups. Answers a mark after every result of the tuples before it.
    FLUSH = 1
    #: Lower bound (inclusive) of ``r - s`` for key field ``index``.
    BOUND_LOW = 2
    #: Upper bound (inclusive) of ``r - s`` for key field ``index``.
    BOUND_HIGH = 3
    #: Side ``index`` gets a new, empty count-based window of ``value`` tuples.
    WINDOW = 4
    #: Side ``index`` gets a new, empty time-based window of lifespan ``value``.
    LIFESPAN = 5
    #: A star every ``value`` probes of a side; zero: as rarely as the probe index allows.
    #: Answers a mark.
    PRECISION = 6
    #: Key field ``index`` takes the part in the bucket of a tuple that ``value`` says, a
    #: :func:`coordinate_layout`. Empties both windows. An index engine only.
    COORDINATE = 7
    #: While ``value`` is 1, the keys in the window of side ``index`` are distinct: a probe needs
    #: to find one match in each bucket only. Empties both windows. An index engine only.
    DISTINCT = 8


class ResultKind(enum.Enum, shape=2):
    """What a result word is."""

    PAIR = 0
    STAR = 1
    MARK = 2


def key_layout(parameters):
    """Fields of a key, as stored."""
    return data.StructLayout(
        {
            key.name: signed(key.bits) if key.signed else unsigned(key.bits)
            for key in parameters.keys
        }
    )


def tuple_layout(parameters):
    """A tuple without its side: ``key`` and ``timestamp`` (zero bits wide if there is none)."""
    return data.StructLayout(
        {"key": key_layout(parameters), "timestamp": unsigned(parameters.timestamp_bits)}
    )


def bound_shape(key):
    """Shape of a bound of ``r - s``; its extremes are bounds that are always met."""
    return signed(key.bits + 1)


def bounds_layout(parameters):
    """One bit for each bound of a band: ``low`` and ``high`` of every key field."""
    keys = parameters.keys if parameters.comparator == "band" else ()
    ends = data.StructLayout({"low": 1, "high": 1})
    return data.StructLayout({key.name: ends for key in keys})


def coordinate_layout(parameters):
    """Part of a key field in the bucket of a tuple, as COORDINATE sets it.

    The field without its sign, shifted right by ``shift``, is the coordinate. Its lowest ``width``
    bits become bits ``place`` and up of the bucket's number. If it is ``hashed``, all bits of the
    field go into all bits of the number instead: for a field whose bounds are equal.
    """
    most = max(key.bits for key in parameters.keys)
    bits = parameters.bucket_width
    return data.StructLayout(
        {"shift": range(most + 1), "width": range(bits + 1), "place": range(bits + 1), "hashed": 1}
    )


def control_layout(parameters):
    """Operands of a control word.

    ``value`` is signed and wide enough for every bound, lifespan, window size and star period.
    """
    value_bits = max(
        *(bound_shape(key).width for key in parameters.keys),
        parameters.timestamp_bits + 1,
        ceil_log2(parameters.capacity + 1) + 1,
        parameters.probe_bits + 2,
        coordinate_layout(parameters).size + 1 if parameters.engine == "index" else 0,
    )
    return data.StructLayout({"op": Control, "index": unsigned(4), "value": signed(value_bits)})


def operation_indices(parameters):
    """Return the operations that an accelerator executes, and how many indices each may have.

    A control word with another operation, or whose index is not below that number, is illegal.
    """
    fields, sides, any_index = (
        len(parameters.keys),
        2,
        1 << control_layout(parameters)["index"].width,
    )
    indices = {
        Control.CLEAR: any_index,
        Control.FLUSH: any_index,
        Control.BOUND_LOW: fields,
        Control.BOUND_HIGH: fields,
        Control.WINDOW: sides,
        Control.PRECISION: any_index,
    }
    if parameters.timestamp_bits:
        indices[Control.LIFESPAN] = sides
    if parameters.engine == "index":
        indices[Control.DISTINCT] = sides
        if parameters.comparator == "band":
            indices[Control.COORDINATE] = fields
    return dict(sorted(indices.items(), key=lambda item: item[0].value))


def input_word(parameters):
    """What the user sends: ``kind``, then a ``tuple`` or a ``control`` operation."""
    return data.StructLayout(
        {
            "kind": InputKind,
            "body": data.UnionLayout(
                {"tuple": tuple_layout(parameters), "control": control_layout(parameters)}
            ),
        }
    )


def decision_members():
    """What the ingress decides about a word.

    ``close`` (one bit per side of probes): the side's group ends with this word.
    ``star``: … and the group is followed by a star.
    ``disorder``: a tuple before this control word broke the order of time.
    ``illegal``: a word before this one was illegal (:func:`hdl.operands.is_legal`).
    ``free``: from here on mergers need not keep the order of cores (only with a mark).
    """
    return {
        "close": unsigned(2),
        "star": unsigned(2),
        "disorder": unsigned(1),
        "illegal": unsigned(1),
        "free": unsigned(1),
    }


def value_ranges(parameters):
    """Return the least and the greatest value of operations that begin a window."""
    ranges = {Control.WINDOW: (1, parameters.capacity)}
    if parameters.timestamp_bits:
        ranges[Control.LIFESPAN] = (0, (1 << parameters.timestamp_bits) - 1)
    return ranges


def limits_layout(parameters):
    """Whether the value of a word is ``below`` or ``above`` what :func:`value_ranges` has."""
    ends = data.StructLayout({"below": 1, "above": 1})
    return data.StructLayout({op.name: ends for op in value_ranges(parameters)})


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
    return (
        parameters.engine == "index"
        and parameters.comparator == "equality"
        and not parameters.pipelined
    )


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
    """What the ingress sends down the distribution tree: a scheduled word, its tuple prepared."""
    body = data.UnionLayout(
        {"tuple": prepared_layout(parameters), "control": control_layout(parameters)}
    )
    return data.StructLayout({"kind": InputKind, "body": body, **decision_members()})


def core_shape(parameters):
    """Core number in a result word: one digit of ``ceil_log2(fan_in)`` bits per merger level,
    least significant first; every merger adds the digit of the port a pair came through."""
    digits = len(tree_levels(parameters.cores, parameters.fan_in))
    return unsigned(digits * ceil_log2(parameters.fan_in))


def punctuation_layout():
    """Body of a star or mark inside the gathering tree."""
    return data.StructLayout(dict.fromkeys(("overflow", "disorder", "illegal", "free"), 1))


def pair_layout(parameters, core_bits):
    """Where a match is: which probe since the last star, and which stored key."""
    return data.StructLayout(
        {
            "probe": unsigned(parameters.probe_bits),
            "lane": unsigned(ceil_log2(parameters.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "core": unsigned(core_bits),
        }
    )


def node_result(parameters, level):
    """Result word of one region side after ``level`` mergers (0: as a region emits it)."""
    core_bits = level * ceil_log2(parameters.fan_in)
    return data.StructLayout(
        {
            "kind": ResultKind,
            "body": data.UnionLayout(
                {
                    "pair": pair_layout(parameters, core_bits),
                    "punctuation": punctuation_layout(),
                }
            ),
        }
    )


def result_word(parameters):
    """What the user receives.

    ``side`` is the side of the probe (zero for a mark). A pair says where the match is; a star or
    mark says whether side R or S (bit 0, 1 of ``overflow``) has outgrown the cores, whether time
    went backwards, and whether a word was illegal.
    """
    core_bits = core_shape(parameters).width
    return data.StructLayout(
        {
            "kind": ResultKind,
            "side": unsigned(1),
            "body": data.UnionLayout(
                {
                    "pair": pair_layout(parameters, core_bits),
                    "punctuation": data.StructLayout(
                        {"overflow": unsigned(2), "disorder": unsigned(1), "illegal": unsigned(1)}
                    ),
                }
            ),
        }
    )


def stored_layout(parameters):
    """A key as regions store it: for a band without signs, the sign bit inverted.

    That keeps the order, and comparing numbers without signs is cheaper to simulate and no dearer
    to build. With digests, a key is its ``digest`` and its ``rest`` (:mod:`hdl.digest`).
    """
    if parameters.digest_bits is not None:
        bits = parameters.digest_bits
        return data.StructLayout({"digest": bits, "rest": parameters.key_bits - bits})
    if parameters.comparator != "band":
        return key_layout(parameters)
    return data.StructLayout({key.name: unsigned(key.bits) for key in parameters.keys})


def pointer_layout(parameters):
    """Position in a region's ring; ``row`` has one more bit than the ring needs.

    So a full ring and an empty one differ, and the distance of two pointers is their difference.
    """
    return data.StructLayout(
        {
            "lane": unsigned(ceil_log2(parameters.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows) + 1),
        }
    )


def span_layout(parameters):
    """The window as one probe sees it: from ``tail``, the oldest key, up to but not ``head``."""
    pointer = pointer_layout(parameters)
    return data.StructLayout({"tail": pointer, "head": pointer})


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
    above every ``low``, 1 above every ``high`` (see :class:`hdl.comparator.Comparator`); otherwise
    the probe's own key, as it would be stored.
    """
    if parameters.comparator != "band":
        return stored_layout(parameters)
    members = {}
    for n, group in enumerate(comparison_groups(parameters)):
        width = sum(key.bits + 1 for key in group)
        members[f"low_{n}"] = members[f"high_{n}"] = unsigned(width)
    return data.StructLayout(members)


def ending_layout(parameters):
    """What follows the results of a group: of how many probes, a star, a mark."""
    return data.StructLayout(
        {
            "count": range(parameters.probes + 1),
            "star": unsigned(1),
            "mark": unsigned(1),
            "punctuation": punctuation_layout(),
        }
    )


def activity_layout(parameters, regions=1):
    """What ``regions`` regions did in one cycle, summed.

    ``comparisons`` of a probe with a key of its window; regions that read a row (``busy``) and that
    could not because their results were stuck (``stalled``).
    """
    return data.StructLayout(
        {
            "comparisons": range(parameters.lanes * parameters.probes * regions + 1),
            "busy": range(regions + 1),
            "stalled": range(regions + 1),
        }
    )
