# SPDX-License-Identifier: Apache-2.0
"""One sequence of results from those of two ports, one for the probes of each side."""

import numpy as np

from host.protocol.bit_fields import pack_field, unpack_field
from host.protocol.result_words import FAILURE, PARITY

__all__ = [
    "by_side",
    "merge_ports",
]

# Nothing is fixed of the order between the two ports but their marks: the n-th mark of one port
# and the n-th mark of the other one are the same mark. ``docs/ordering.md`` says what that means
# for a consumer.

#: Fields of marks in which any port may tell a fault.
FAULTS = ("overflow", "disorder", "illegal")
#: A mark comes behind the results of both sides, which are 0 and 1.
BEHIND = 2


def merge_ports(codec, r, s):
    """Return the results of both ports: up to each mark those of R, those of S, and the mark.

    A mark tells the faults of both ports. If both name a failed core, it names that of R's port.

    Parameters
    ----------
    codec : ResultCodec
        Of the accelerator.
    r, s : array of uint64
        Results of R's port and of S's port, one per row, with equal numbers of marks.

    Raises
    ------
    ValueError
        If one port has more marks than the other one.
    """
    is_mark = [codec.marks(some) for some in (r, s)]
    counts = [int(marks.sum()) for marks in is_mark]
    if counts[0] != counts[1]:
        raise ValueError(
            f"Each mark must come from both ports, but R's port has {counts[0]} and S's port "
            f"{counts[1]}; read the port that lacks marks until it has as many"
        )
    joined = r.copy()
    joined[is_mark[0]] = _marks_of_both(codec, r[is_mark[0]], s[is_mark[1]])
    before = [np.cumsum(marks) - marks for marks in is_mark]
    rest = ~is_mark[1]
    return _arranged(
        codec, np.concatenate([joined, s[rest]]), np.concatenate([before[0], before[1][rest]])
    )


def by_side(codec, results):
    """Return results in the order of :func:`merge_ports`.

    Two answers are equal in this order if the ports gave the same in both.

    Parameters
    ----------
    codec : ResultCodec
        Of the accelerator.
    results : array of uint64
        Results, one per row, with each mark once.
    """
    is_mark = codec.marks(results)
    return _arranged(codec, results, np.cumsum(is_mark) - is_mark)


def _arranged(codec, results, marks_before):
    sides = unpack_field(results, codec.result["side"])
    place = np.where(codec.marks(results), BEHIND, sides)
    return results[np.lexsort((place, marks_before))]


def _marks_of_both(codec, r, s):
    """Return the marks that stand for those of both ports."""
    layout = codec.result
    marks = np.zeros_like(r)
    pack_field(marks, layout["kind"], codec.mark)
    for name in FAULTS:
        both = unpack_field(r, layout[name]) | unpack_field(s, layout[name])
        pack_field(marks, layout[name], both)
    failed, core = FAILURE
    if failed in layout.fields:
        of_r, of_s = (unpack_field(some, layout[failed]) for some in (r, s))
        pack_field(marks, layout[failed], of_r | of_s)
        for name in (core, PARITY):
            if name in layout.fields:
                told = [unpack_field(some, layout[name]) for some in (r, s)]
                pack_field(marks, layout[name], np.where(of_r != 0, told[0], told[1] * of_s))
    return marks
