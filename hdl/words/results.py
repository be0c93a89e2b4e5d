# SPDX-License-Identifier: Apache-2.0
"""Result words, from a region to the user."""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from hdl.tree import tree_levels

from .values import ROUND_BITS, MatchKind, match_layout, root_level

__all__ = [
    "ResultKind",
    "core_shape",
    "failure_members",
    "faults_layout",
    "node_result",
    "pair_layout",
    "punctuation_layout",
    "result_kinds",
    "result_layout",
    "result_ports",
    "result_word",
    "results_of",
    "results_per_cycle",
    "turns_shape",
]


class ResultKind(enum.Enum, shape=2):
    """Kind of a result word."""

    PAIR = 0
    STAR = 1
    MARK = 2
    #: The second place of a word of two results is empty.
    NONE = 3


def core_shape(parameters):
    """Return the shape of the core number in a result word.

    It has one digit of ``ceil_log2(fan_in)`` bits per merger level, least significant digit first.
    Every merger adds a digit: the number of the port through which the pair came.
    """
    digits = len(tree_levels(parameters.cores, parameters.fan_in))
    return unsigned(digits * ceil_log2(parameters.fan_in))


def punctuation_layout(parameters):
    """Return the layout of the body of a star or mark as a region sends it.

    With rounds, ``inner`` says of a star that it ends a round, and not the results of its probe,
    and of a mark that results come in rounds from there on.
    """
    flags = ("overflow", "disorder", "illegal", "free", *["inner"] * parameters.engine.rounds)
    return data.StructLayout(dict.fromkeys(flags, 1))


def failure_members(parameters, core_bits):
    """Return the members of a star or mark that tell of a failed core, if cores have gates.

    ``failed``: results of at least one core are missing. ``failed_core``: the first of these cores.
    ``failed_parity``, with parity: why that core has failed. Bit 0 is set if it read a flipped bit
      of its tuples of R, bit 1 if it read one of its tuples of S; zero if it stopped.
    """
    if not parameters.has_gates:
        return {}
    parity = {"failed_parity": 2} if parameters.engine.parity else {}
    # The number of the core is above the others: every merger adds a digit above it.
    return {"failed": 1, **parity, "failed_core": core_bits}


def pair_layout(parameters, core_bits):
    """Return the layout of a match: the place of the stored key, and the number of the probe.

    ``probe`` counts the probes of a side since its last star.
    """
    return data.StructLayout(
        {
            "probe": unsigned(parameters.engine.probe_bits),
            "lane": unsigned(ceil_log2(parameters.engine.lanes)),
            "row": unsigned(ceil_log2(parameters.ring_rows)),
            "core": unsigned(core_bits),
        }
    )


def node_result(parameters, level):
    """Return the layout of a result word of one region side after ``level`` mergers.

    A region emits level 0. With rounds, a pair and the star of a round have the lowest bits of
    their ``round`` (:mod:`hdl.words.values`). A join aggregate has a ``value`` in place of a pair.
    """
    if parameters.is_aggregated:
        return value_word(match_layout(parameters, level), punctuation_layout(parameters))
    core_bits = level * ceil_log2(parameters.fan_in)
    return data.StructLayout(
        {
            "kind": ResultKind,
            **({"round": unsigned(ROUND_BITS)} if parameters.engine.rounds else {}),
            "body": data.UnionLayout(
                {
                    "pair": pair_layout(parameters, core_bits),
                    "punctuation": data.StructLayout(
                        {
                            **{name: field.shape for name, field in punctuation_layout(parameters)},
                            **failure_members(parameters, core_bits),
                        }
                    ),
                }
            ),
        }
    )


def value_word(value, punctuation):
    """Return the layout of a result of a join aggregate, with these bodies."""
    body = data.UnionLayout({"value": value, "punctuation": punctuation})
    return data.StructLayout({"kind": MatchKind, "body": body})


def result_kinds(parameters):
    """Return the kinds of results: of one that is no punctuation, of a star, of a mark."""
    kinds = parameters.engine.kinds
    return kinds(0), kinds.STAR, kinds.MARK


def turns_shape(parameters):
    """Return the shape in which the ingress tells the combiner whose results leave next.

    Bit 0 stands for R and bit 1 for S; at least one of them is set. The results of each such side
    leave up to its next star. If both bits are set, the results of R leave first. With two tuples
    per word there is a bit 2, which, if set, lets the results of S leave first.
    """
    return unsigned(1 + parameters.engine.tuples_per_word)


def result_word(parameters):
    """Return the layout of the word that the user receives: one result, or two.

    It holds two results if ``tuples_per_word`` is 2. Then ``one`` comes before ``two``, and the
    kind of ``two`` is NONE if the word holds only one result. A mark is always alone, in ``one``.
    """
    result = result_layout(parameters)
    if not parameters.side_by_side:
        return result
    return data.StructLayout({"one": result, "two": result})


def faults_layout(parameters):
    """Return the layout of a star or mark, as the user gets them: the faults that it reports.

    With rounds, ``inner`` says of a star that it ends a round. Such a star reports no faults.
    """
    inner = {"inner": unsigned(1)} if parameters.engine.rounds else {}
    return data.StructLayout(
        {
            "overflow": unsigned(2),
            "disorder": unsigned(1),
            "illegal": unsigned(1),
            **inner,
            **failure_members(parameters, core_shape(parameters).width),
        }
    )


def result_layout(parameters):
    """Return the layout of one result.

    ``side`` is the side of the probe, and zero for a mark. A pair says where the match is, if cores
    are arranged as in a SplitJoin. A star or mark reports faults: ``overflow`` of the window of
    side R (bit 0) or S (bit 1), ``disorder`` if time went backwards, ``illegal`` if a word was
    illegal, and, if cores have gates, :func:`failure_members`.

    All probes of a join aggregate are of side R, so its results name no side, and a ``value`` takes
    the place of a pair (:func:`hdl.words.values.match_layout`).
    """
    if parameters.is_aggregated:
        value = match_layout(parameters, root_level(parameters))
        return value_word(value, faults_layout(parameters))
    return data.StructLayout(
        {
            "kind": ResultKind,
            "side": unsigned(1),
            "body": data.UnionLayout(
                {
                    "pair": parameters.arrangement.pair_layout(parameters),
                    "punctuation": faults_layout(parameters),
                }
            ),
        }
    )


def result_ports(parameters):
    """Return the names of an accelerator's result ports.

    A single port, ``o``, has the results of both sides. Of two ports, ``o_r`` has the results of
    R's probes and ``o_s`` those of S's probes. A mark leaves by all ports.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """
    return ("o",) if parameters.engine.result_streams == 1 else ("o_r", "o_s")


def results_per_cycle(parameters):
    """Return the largest number of results that leave in a cycle, by all ports together."""
    return parameters.engine.tuples_per_word * parameters.engine.result_streams


def results_of(word):
    """Return the results in a result word."""
    return [word.one, word.two] if "two" in word.shape().members else [word]
