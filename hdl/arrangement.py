# SPDX-License-Identifier: Apache-2.0
"""How the cores of a join are arranged: as in a SplitJoin, or in a way of one's own."""

from importlib import import_module

from .accelerator import Accelerator, JoinAggregateAccelerator
from .parts import require
from .predicates.own import MOST_LATENCY
from .words.results import core_shape, pair_layout

__all__ = ["SPLITJOIN", "Arrangement", "arrangement_named"]

#: What parameters call the arrangement of a SplitJoin.
SPLITJOIN = "splitjoin"


class Arrangement:
    """An arrangement of cores, and what an accelerator of it differs in; here a SplitJoin's.

    A subclass in a file of its own is all that another arrangement takes, beside its accelerator.
    ``hdl generate --architecture MODULE:NAME`` names an object of it. Shells, headers, manifests
    and drivers are those of every join.
    """

    #: Whether stars follow the results of probes, and segments of cores take turns.
    has_stars = True
    #: Most cycles that a custom predicate may take.
    predicate_cycles = MOST_LATENCY
    #: Pattern that finds core, side and memory in the hierarchical name of a block RAM, if every
    #: core is to stand beside its neighbours; the side is "left" or "right", or the one that the
    #: region stores: "s" or "r".
    rings = None

    def check(self, parameters):
        """Raise :exc:`ValueError` unless the cores of such an accelerator can be arranged so."""

    def slack(self, parameters):
        """Return the least number of ring slots per region beyond the sub-window.

        They let tuples be stored while probes wait for their group to fill: the span of the group
        must survive these stores. Slots for three groups keep both regions of a core busy. A probe
        of an index is under way for longer than it takes to send the next one, so an index has more
        slots.
        """
        under_way = 3 * parameters.engine.probes + parameters.engine.under_way
        return -(-under_way // parameters.cores) + 1

    def pair_layout(self, parameters):
        """Return the layout of what a result says of a match."""
        return pair_layout(parameters, core_shape(parameters).width)

    def described(self, parameters, operations):
        """Return the arrangement's own parts of a manifest; ``operations`` are names."""
        return {}

    def accelerator(self, parameters):
        """Return the accelerator, which has the ports of every join."""
        return (JoinAggregateAccelerator if parameters.is_aggregated else Accelerator)(parameters)


def arrangement_named(name):
    """Return the :class:`Arrangement` that parameters name.

    Raises
    ------
    ValueError
        If nothing is arranged so.
    """
    if name == SPLITJOIN:
        return Arrangement()
    wrong = (
        f"Parameter 'architecture' must be {SPLITJOIN!r} or the importable 'module:name' of an"
        f" arrangement of cores, not {name!r}"
    )
    require(isinstance(name, str), wrong)
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{wrong} ({error})") from error
    require(isinstance(found, Arrangement), wrong)
    return found
