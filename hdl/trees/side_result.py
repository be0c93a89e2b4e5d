# SPDX-License-Identifier: Apache-2.0
"""The result of one side, as the user gets it."""

from hdl.words.results import ResultKind

__all__ = ["elaborate_side_result"]


def elaborate_side_result(m, parameters, word, result, side):
    """Convert a word of a gathering tree to a result of its side.

    Parameters
    ----------
    m : Module
        Receives the statements.
    parameters : JoinParameters
        Parameters of the accelerator.
    word : View of node_result(parameters, levels)
        Word at the root of the tree.
    result : View of result_layout(parameters)
        Result that is assigned.
    side : int
        Side of the probes: 0 for R, 1 for S.
    """
    m.d.comb += [
        result.kind.eq(word.kind),
        result.side.eq(side * (word.kind != ResultKind.MARK)),
    ]
    with m.If(word.kind == ResultKind.PAIR):
        m.d.comb += result.body.pair.eq(word.body.pair)
    with m.Else():
        flags, own = word.body.punctuation, result.body.punctuation
        m.d.comb += [
            own.overflow[1 - side].eq(flags.overflow),  # of the side that is probed
            own.disorder.eq(flags.disorder),
            own.illegal.eq(flags.illegal),
        ]
        if parameters.rounds:
            m.d.comb += own.inner.eq(flags.inner & (word.kind == ResultKind.STAR))
        if parameters.has_gates:
            m.d.comb += [own.failed.eq(flags.failed), own.failed_core.eq(flags.failed_core)]
        if parameters.parity:
            m.d.comb += own.failed_parity.eq(flags.failed_parity)
