# SPDX-License-Identifier: Apache-2.0
"""Result words, from a region to the user."""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from hdl.tree import tree_levels

__all__ = [
    "ResultKind",
    "core_shape",
    "node_result",
    "ordinals_layout",
    "pair_layout",
    "punctuation_layout",
    "result_layout",
    "result_word",
    "turns_shape",
]


class ResultKind(enum.Enum, shape=2):
    """What a result word is."""

    PAIR = 0
    STAR = 1
    MARK = 2
    #: Nothing: the second place of a word of two results is empty.
    NONE = 3


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


def turns_shape(parameters):
    """Sides whose results leave next, up to a star each, as the ingress tells the combiner.

    Bit 0 stands for R, bit 1 for S; at least one of them is set. If both are, R's results come
    first, unless bit 2 is set, which is there with two tuples in a word.
    """
    return unsigned(1 + parameters.tuples_per_word)


def result_word(parameters):
    """What the user receives: a result, or two with ``tuples_per_word`` 2.

    Of two, ``one`` comes before ``two``, which is NONE if there is nothing in it. A mark is in
    ``one``, and alone.
    """
    result = result_layout(parameters)
    if parameters.tuples_per_word == 1:
        return result
    return data.StructLayout({"one": result, "two": result})


def ordinals_layout(parameters):
    """Which tuples match: their numbers within their sides since CLEAR, modulo a power of two."""
    return data.StructLayout(dict.fromkeys(("r", "s"), unsigned(parameters.ordinal_bits)))


def result_layout(parameters):
    """One result.

    ``side`` is the side of the probe (zero for a mark). A pair says where the match is; a star or
    mark says whether side R or S (bit 0, 1 of ``overflow``) has outgrown the cores, whether time
    went backwards, and whether a word was illegal. A pair of a chain says which tuples match.
    """
    if parameters.is_chain:
        pair = ordinals_layout(parameters)
    else:
        pair = pair_layout(parameters, core_shape(parameters).width)
    return data.StructLayout(
        {
            "kind": ResultKind,
            "side": unsigned(1),
            "body": data.UnionLayout(
                {
                    "pair": pair,
                    "punctuation": data.StructLayout(
                        {"overflow": unsigned(2), "disorder": unsigned(1), "illegal": unsigned(1)}
                    ),
                }
            ),
        }
    )
