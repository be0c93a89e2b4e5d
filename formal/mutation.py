# SPDX-License-Identifier: Apache-2.0
"""Mutants: single changes in the source of a component, made in memory."""

import ast
from collections import Counter
from contextlib import contextmanager
import copy
from dataclasses import dataclass
import inspect
from itertools import islice
import sys
import textwrap
from types import FunctionType, ModuleType

from .changes import changes, reset_changes

__all__ = ["Mutant", "mutants_of"]


@dataclass(frozen=True)
class Mutant:
    """A single source change.

    Attributes
    ----------
    owner : type or module
        Class or module that holds the function.
    function : str
        Name of the function.
    text : str
        The change: the original code, and its replacement.
    code : function
        The changed function.
    """

    owner: type | ModuleType
    function: str
    text: str
    code: FunctionType

    @property
    def name(self):
        """Return where the change is, and which change it is."""
        place = self.owner.__name__.rpartition(".")[2]
        return f"{place}.{self.function}: {self.text}"

    @contextmanager
    def applied(self):
        """Replace the function by its changed version for the duration of the block."""
        kept = self.owner.__dict__[self.function]
        setattr(self.owner, self.function, self.code)
        try:
            yield
        finally:
            setattr(self.owner, self.function, kept)


def mutants_of(target, *, of_reset=False):
    """Return the mutants of a component or of a function.

    Parameters
    ----------
    target : type or function
        A component, all of whose methods are changed except special ones, or a single function.
    of_reset : bool
        Return the mutants that leave something out of reset, instead of all others.

    Returns
    -------
    list of Mutant
    """
    if inspect.isclass(target):
        owner = target
        names = [
            name
            for name, value in vars(target).items()
            if inspect.isfunction(value) and not name.startswith("__")
        ]
    else:
        owner, names = sys.modules[target.__module__], [target.__name__]
        if "." in target.__qualname__:
            owner = vars(owner)[target.__qualname__.partition(".")[0]]
    every = reset_changes if of_reset else changes
    return [mutant for name in names for mutant in function_mutants(owner, name, every)]


def function_mutants(owner, name, every):
    """Return the mutants of one function of ``owner``: one per change that ``every`` yields."""
    function = vars(owner)[name]
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    made = []
    for number, _ in enumerate(every(tree)):
        changed = copy.deepcopy(tree)
        node, change = next(islice(every(changed), number, None))
        made.append((change(node), changed))
    times = Counter(text for text, _ in made)
    turns = Counter()
    found = []
    for text, changed in made:
        turns[text] += 1
        which = f"{text} ({turns[text]})" if times[text] > 1 else text
        found.append(Mutant(owner, name, which, compiled(changed, function)))
    return found


def compiled(tree, function):
    """Return the function that a syntax tree defines, in the module of ``function``."""
    ast.fix_missing_locations(tree)
    code = compile(tree, f"<mutant of {function.__qualname__}>", "exec")
    made = {}
    exec(code, function.__globals__, made)
    return made[function.__name__]
