# SPDX-License-Identifier: Apache-2.0
"""What flows through a chain of cores: tuples, expiry, acknowledgements, fences; and matches.

R flows to the left, from the last core to core 0, and S to the right, as the seed draws it. The
*lane* of a side is the way that its tuples take.
"""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from hdl.words.inputs import bounds_layout, control_layout
from hdl.words.prepared import criterion_layout, stored_layout
from hdl.words.results import ordinals_layout

__all__ = [
    "LaneKind",
    "chain_result",
    "lane_word",
    "match_layout",
    "pass_layout",
    "place_shape",
    "with_criterion",
]


class LaneKind(enum.Enum, shape=3):
    """What a word of a lane is."""

    #: A tuple of the lane's side.
    TUPLE = 0
    #: The oldest tuple of the *other* side leaves its window, before the words behind this one.
    EXPIRE = 1
    #: All words before this one are to be finished: a mark follows their results.
    FENCE = 2
    #: The neighbour has taken a tuple of the other side.
    ACK = 3
    #: New bounds of a band (only of the handshake join, where cores prepare criteria).
    BOUND = 4


def with_criterion(parameters):
    """Return whether a tuple carries what it compares stored keys with beside its key.

    Only where that is another thing, in a band. In the handshake join tuples wait in memories on
    their way, which would have to be three times as wide: so there a core prepares it.
    """
    return parameters.comparator == "band" and parameters.architecture != "handshake"


def lane_word(parameters):
    """A word between two cores, or between the coordinator and the chain.

    ``homeless``: the core that keeps the tuple has not been reached yet. ``before``: how many
    tuples of the other side came before it. ``restart``: numbers begin at zero behind this fence.
    """
    criterion = {}
    if with_criterion(parameters):
        criterion = {"criterion": criterion_layout(parameters)}
    bodies = {"tuple": data.StructLayout({"key": stored_layout(parameters), **criterion})}
    own = {"homeless": unsigned(1), "before": unsigned(parameters.ordinal_bits)}
    if parameters.architecture == "handshake":
        own = {}
        if parameters.comparator == "band":
            control = control_layout(parameters)
            bodies["bound"] = data.StructLayout(
                {"bounds": bounds_layout(parameters), "value": control["value"].shape}
            )
    return data.StructLayout(
        {"kind": LaneKind, "restart": 1, **own, "body": data.UnionLayout(bodies)}
    )


def place_shape(parameters):
    """Place in a ring, with a wrap bit."""
    return unsigned(ceil_log2(parameters.ring_rows) + 1)


def pass_layout(parameters, *, limited=False, meets=0):
    """What a pass of one tuple over a ring is.

    From row ``first`` on ``rows`` rows are read; the oldest has the tuple of number ``oldest``.
    ``tag`` is the number of the tuple that passes. ``mark``: there is no tuple, a mark follows.
    If ``limited``, tuples from the number ``limit`` on do not count. If it meets others on their
    way (up to ``meets`` bits): ``met`` of them, from the number ``met_first`` on; ``homeless`` is
    that of the tuple that passes.
    """
    tag = unsigned(parameters.ordinal_bits)
    limit = {"limit": tag} if limited else {}
    met = {"met_first": tag, "met": unsigned(meets), "homeless": 1} if meets else {}
    rows = range(parameters.ring_rows + 1)
    first = place_shape(parameters)
    return data.StructLayout(
        {"mark": 1, "first": first, "rows": rows, "oldest": tag, "tag": tag, **limit, **met}
    )


def match_layout(parameters):
    """Numbers of the tuple that was ``stored`` and of the one that passed; or a ``mark``."""
    tag = unsigned(parameters.ordinal_bits)
    return data.StructLayout({"mark": 1, "stored": tag, "passing": tag})


def chain_result(parameters):
    """A result on its way out: a mark, or a pair that a tuple of ``side`` has found."""
    return data.StructLayout({"mark": 1, "side": 1, "pair": ordinals_layout(parameters)})
