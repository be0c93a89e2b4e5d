# SPDX-License-Identifier: Apache-2.0
"""Which passes a join aggregate takes for the matches of left rows, before they run."""

from dataclasses import replace

from host.cost_model.join import JoinSize
from host.query.join_query import JoinQuery
from host.reference.window import CountWindow

__all__ = ["match_passes"]


def match_passes(query: JoinQuery, size: JoinSize) -> tuple[int, JoinSize]:
    """Return the passes over the rows for one aggregated column, and the size of each.

    A left row is sent behind all of its right rows, later ones included
    (:mod:`host.join.match_passes`). Over a window of time it meets the right rows of two windows in
    one pass. A window of rows takes a pass for the earlier right rows, and one for the later ones.

    Parameters
    ----------
    query : JoinQuery
        Which rows match.
    size : JoinSize
        Of the join; ``windows`` are the rows before a row.
    """
    if isinstance(query.window, CountWindow):
        return 2, size
    left, right = size.windows
    return 1, replace(size, windows=(left, 2 * right))
