# SPDX-License-Identifier: Apache-2.0
"""What a proof is: a bench, what it says, how deep it goes, and what has to break it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from .bench import Bench
from .mutation import mutants_of

__all__ = ["Proof"]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Claims about one component.

    Parameters
    ----------
    name : str
        As ``python -m hdl prove`` knows it.
    says : str
        What is proved, in a sentence.
    component : str
        What it is proved of, with its parameters.
    build : function
        Takes nothing, returns the :class:`hdl.proofs.bench.Bench`.
    depth : int
        Cycles that are looked at from the initial state on.
    induction : int
        Cycles from which the next one follows, whatever came before: then the claims hold for
        ever. Zero if they are only shown for :py:`depth` cycles.
    mutate : sequence of type or function
        What the mutants are made of.
    of_reset : bool
        The mutants are those whose reset forgets something.
    spared : dict of str to str
        Mutants that it need not notice, by a part of their names, and why: they change nothing that
        can be seen, or they are another proof's.
    """

    name: str
    says: str
    component: str
    build: Callable[[], Bench]
    depth: int
    induction: int = 0
    mutate: tuple = ()
    of_reset: bool = False
    spared: dict = field(default_factory=dict)

    @property
    def reach(self):
        """For how long the claims hold, in words."""
        return f"induction {self.induction}" if self.induction else f"bounded {self.depth}"

    def mutants(self):
        """Return the mutants that have to break it."""
        return [mutant for mutant in self.every if not self.is_spared(mutant)]

    @property
    def spares(self):
        """How many mutants it need not notice."""
        return sum(self.is_spared(mutant) for mutant in self.every)

    def is_spared(self, mutant):
        """Need it not notice a mutant?"""
        return any(part in mutant.name for part in self.spared)

    @cached_property
    def every(self):
        """All mutants, those that it need not notice included."""
        return [
            mutant
            for target in self.mutate
            for mutant in mutants_of(target, of_reset=self.of_reset)
        ]
