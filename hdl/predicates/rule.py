# SPDX-License-Identifier: Apache-2.0
"""What an accelerator knows of a predicate, whichever it is, and the comparator that decides it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.parts import Part
from hdl.words.inputs import key_layout
from hdl.words.prepared import criterion_layout, stored_layout

__all__ = ["Comparator", "MOST_DIGEST_BITS", "Rule", "criterion_signature"]

#: Widest digest: a few lanes of it share a row of a block RAM.
MOST_DIGEST_BITS = 24


@dataclass(frozen=True, kw_only=True)
class Rule(Part, ABC):
    """A kind of predicate: all that is different from one comparator to another.

    What is stored of a key and what a probe compares it with, the hardware that compares the two,
    and the control words that set something of it. Nothing outside of a rule asks which one it is.
    The defaults are those of a rule that compares keys as they are. All methods take the parameters
    of the accelerator.
    """

    #: Operations that set something of the rule and empty both windows for it.
    restarts = ()

    def check(self, parameters):
        """Raise :exc:`ValueError` unless an accelerator can have the rule."""

    def bounded(self, parameters):
        """Return the key fields that have bounds, which control words set."""
        return ()

    def operations(self, parameters):
        """Return the operations of the rule's own, with the number of legal indices of each."""
        return {}

    def operands(self, parameters):
        """Return the layouts of the values of these operations."""
        return []

    def described(self, parameters):
        """Return the rule's own parts of a manifest; a layout stands for its description."""
        return {}

    def stored_layout(self, parameters):
        """Return the layout of a key as regions store it."""
        return key_layout(parameters)

    def criterion_layout(self, parameters):
        """Return the layout of what a probe compares stored keys with."""
        return self.stored_layout(parameters)

    def stored(self, parameters, key):
        """Return the parts of a key as regions store it, by the names in their layout."""
        return {field.name: key[field.name] for field in parameters.keys}

    def preparation(self, parameters):
        """Return the components that prepare a tuple once its ranges are known, by name."""
        return {}

    def latency(self, parameters):
        """Return the cycles from two keys to their match."""
        return 1

    @abstractmethod
    def compare(self, m, platform, comparator):
        """Add the hardware of a :class:`~hdl.predicates.rule.Comparator` to its module.

        Returns
        -------
        Value
            The match of the keys that were there :meth:`latency` cycles ago.
        """


def criterion_signature(parameters):
    """Return a signature with one member for each part of a probe's criterion.

    The simulator would have to cut a single wide signal into its parts in every cycle.
    """
    return wiring.Signature(
        {name: Out(field.shape) for name, field in criterion_layout(parameters)}
    )


class Comparator(wiring.Component):
    """Compare a prepared probe with a stored key, and say whether they match.

    How it does that is told by the :class:`~hdl.predicates.rule.Rule` of the accelerator.

    Latency: 1 cycle; the register is between comparing the parts of a key and combining the
    outcomes. A predicate of one's own says how many cycles it takes. Throughput: 1 comparison per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    criterion : In(criterion_signature(parameters))
    key : In
    match : Out(1)
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self.latency = parameters.rule.latency(parameters)
        super().__init__(
            {
                "criterion": In(criterion_signature(parameters)),
                "key": In(stored_layout(parameters)),
                "match": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.match.eq(self.parameters.rule.compare(m, platform, self))
        return m

    def has_chains(self, platform):
        """Return whether to use :class:`CarryChain`: where there are many, on an ECP5."""
        return is_ecp5(platform) and self.parameters.engine.chains
