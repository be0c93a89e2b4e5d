# SPDX-License-Identifier: Apache-2.0
"""Which parts parameters name: the rule of the predicate, and the engine of a region."""

from .external.engine import ExternalEngine
from .index.engine import IndexEngine
from .predicates.band import Band
from .predicates.cells import Cells
from .predicates.equality import Equality, Remainders
from .predicates.own import Own
from .reducing import ReducingEngine
from .scan.digests import DigestEngine
from .scan.engine import ScanEngine

__all__ = ["COMPARATORS", "ENGINES", "STORES", "engines_named", "rule_of"]

ENGINES = ("scan", "index")
STORES = ("chip", "external")


def engines_named(parameters):
    """Return the engines that parameters name: the first one is taken, if the others let it."""
    named = {
        IndexEngine: parameters.engine == "index",
        DigestEngine: parameters.digest_bits is not None,
        ExternalEngine: parameters.store == "external",
        ReducingEngine: parameters.value_bits > 0,
    }
    return [engine for engine, is_named in named.items() if is_named] or [ScanEngine]


#: By the names of comparators: their rules, without digests and with them.
RULES = {
    "band": (Band(), Cells()),
    "equality": (Equality(), Remainders()),
    "custom": (Own(), Own()),
}
COMPARATORS = tuple(RULES)


def rule_of(parameters):
    """Return the :class:`~hdl.predicates.rule.Rule` of parameters."""
    whole, digested = RULES[parameters.comparator]
    return whole if parameters.digest_bits is None else digested
