# SPDX-License-Identifier: Apache-2.0
"""Description of a proof: bench, statement, depth, and the mutants that must break it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

from .bench import Bench
from .mutation import mutants_of

__all__ = ["PROOFS", "Proof", "proof"]

#: All proofs of the modules that have been imported, by name.
PROOFS = {}


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Claims about one component.

    Parameters
    ----------
    name : str
        Name for ``python -m formal``.
    says : str
        What is proved, in a sentence.
    component : str
        Component that it is proved of, with its parameters.
    state : function
        Puts the component and the claims about it into a :class:`formal.bench.Bench`.
    depth : int
        Number of cycles, from the initial state on, for which the claims are checked.
    induction : int
        Number of cycles of the induction step: if the claims hold in so many consecutive cycles,
        they hold in the next one, and therefore forever. Zero if the claims are only checked for
        :py:`depth` cycles.
    mutate : sequence of type or function
        Components and functions from which the mutants are made.
    of_reset : bool
        Use the mutants that leave something out of reset.
    spared : dict of str to str
        Mutants that the proof need not detect, by a part of their names, with the reason: the
        change has no visible effect, or another proof detects it.
    """

    name: str
    says: str
    component: str
    state: Callable[[Bench], None]
    depth: int
    induction: int = 0
    mutate: tuple = ()
    of_reset: bool = False
    spared: dict = field(default_factory=dict)

    def build(self):
        """Return the bench."""
        bench = Bench()
        self.state(bench)
        return bench

    @property
    def reach(self):
        """Return for how long the claims hold, in words."""
        return f"induction {self.induction}" if self.induction else f"bounded {self.depth}"

    def mutants(self):
        """Return the mutants that must break the proof."""
        return [mutant for mutant in self.every if not self.is_spared(mutant)]

    @property
    def spares(self):
        """Return the number of mutants that the proof need not detect."""
        return sum(self.is_spared(mutant) for mutant in self.every)

    def is_spared(self, mutant):
        """Return whether the proof need not detect a mutant."""
        return any(part in mutant.name for part in self.spared)

    @cached_property
    def every(self):
        """Return all mutants, including those that the proof need not detect."""
        return [
            mutant
            for target in self.mutate
            for mutant in mutants_of(target, of_reset=self.of_reset)
        ]


def proof(name, *, given=None, **options):
    """Return a decorator that makes a proof of a function and adds it to :data:`PROOFS`.

    Parameters
    ----------
    name : str
    given : dict, optional
        Arguments of the function besides the bench.
    **options
        The other parameters of a :class:`Proof`.

    Raises
    ------
    ValueError
        If there is a proof of this name.
    """

    def added(state):
        if name in PROOFS:
            raise ValueError(f"There are two proofs called {name!r}: rename one of them")
        PROOFS[name] = Proof(name=name, state=partial(state, **(given or {})), **options)
        return state

    return added
