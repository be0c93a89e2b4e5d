# SPDX-License-Identifier: Apache-2.0
"""Mutants: single changes in the source of a component, made in memory."""

import ast
from collections import Counter
from contextlib import contextmanager
import copy
from dataclasses import dataclass
import inspect
from itertools import islice, pairwise
import sys
import textwrap
from types import FunctionType, ModuleType

__all__ = ["Mutant", "changes", "mutants_of", "reset_changes"]

# Source changes from which mutants are made.

#: Binary operators, and the operators that replace them.
BINARY = {
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


REDUCTIONS = {"any": "all", "all": "any"}


def changes(tree):
    """Yield every change that can be made in a syntax tree, as (node, function that changes it).

    Names, shapes and docstrings are left alone.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            yield node, change_operator
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            yield node, change_comparison
            if type(getattr(node.comparators[0], "value", None)) is int:
                yield node, next_constant
        elif isinstance(node, ast.Call):
            yield from call_changes(node)
        elif isinstance(node, ast.List):
            for place, item in enumerate(node.elts):
                if is_assignment(item):
                    yield node, dropped(place)
            for place, pair in enumerate(pairwise(node.elts)):
                if all(is_assignment(item) for item in pair):
                    yield node, exchanged(place)
        elif isinstance(node, ast.AugAssign) and is_assignment(node.value):
            yield node, drop_assignment
        yield from negations(node)


def reset_changes(tree):
    """Yield every change by which a register or submodule is left out of reset."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_signal(node):
            if all(keyword.arg != "reset_less" for keyword in node.keywords):
                yield node, leave_out_of_reset
        elif isinstance(node, ast.AugAssign) and ".reset.eq" in ast.unparse(node.value):
            yield node, drop_assignment


def is_signal(node):
    """Return whether a call creates a signal."""
    called_from = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return getattr(called_from, "id", "") == "Signal"


def leave_out_of_reset(node):
    """Leave a signal out of reset."""
    before = ast.unparse(node)
    node.keywords.append(ast.keyword("reset_less", ast.Constant(True)))
    return f"{before} -> reset_less"


def call_changes(node):
    """Yield the changes of a call."""
    name = called(node)
    if name == "Mux" and len(node.args) == 3:
        yield node, swap_choices
    elif name in REDUCTIONS and not node.args:
        yield node, change_reduction
    elif name in ("If", "Elif"):
        yield node, drop_condition
    elif name == "eq" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        yield node, change_constant
    for keyword in node.keywords:
        if keyword.arg == "init" and isinstance(keyword.value, ast.Constant):
            yield keyword, change_initial


def negations(node):
    """Yield the removals of negations inside a node."""
    for field, value in ast.iter_fields(node):
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.Invert):
                yield node, unnegated(field, place if isinstance(value, list) else None)


def called(node):
    """Return the name of the function that is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_assignment(node):
    """Return whether a node is an Amaranth assignment."""
    return isinstance(node, ast.Call) and called(node) == "eq"


def change_operator(node):
    """Replace a binary operator."""
    before = ast.unparse(node)
    node.op = BINARY[type(node.op)]()
    return f"{before} -> {ast.unparse(node)}"


def change_comparison(node):
    """Replace the operator of a comparison."""
    before = ast.unparse(node)
    node.ops[0] = COMPARISONS[type(node.ops[0])]()
    return f"{before} -> {ast.unparse(node)}"


def change_reduction(node):
    """Replace ``any`` by ``all``, or ``all`` by ``any``."""
    before = ast.unparse(node)
    node.func.attr = REDUCTIONS[node.func.attr]
    return f"{before} -> {ast.unparse(node)}"


def swap_choices(node):
    """Swap the choices of a multiplexer."""
    before = ast.unparse(node)
    node.args[1:] = node.args[:0:-1]
    return f"{before} -> choices swapped"


def next_constant(node):
    """Compare with a constant that is greater by one."""
    before = ast.unparse(node)
    node.comparators[0] = ast.Constant(node.comparators[0].value + 1)
    return f"{before} -> {ast.unparse(node)}"


def drop_condition(node):
    """Replace a condition by one that always holds."""
    before = ast.unparse(node.args[0])
    node.args[0] = ast.Constant(1)
    return f"{called(node)}({before}) -> {called(node)}(1)"


def change_constant(node):
    """Assign another constant."""
    before = ast.unparse(node)
    node.args[0] = ast.Constant(int(not node.args[0].value))
    return f"{before} -> {ast.unparse(node)}"


def change_initial(node):
    """Replace an initial value."""
    before = node.value.value
    node.value = ast.Constant(int(not before))
    return f"init={before} -> init={node.value.value}"


def drop_assignment(node):
    """Remove the only assignment of a statement."""
    before = ast.unparse(node.value)
    node.value = ast.List([], ast.Load())
    return f"without {before}"


def dropped(place):
    """Return the change that removes one of several assignments."""

    def change(node):
        return f"without {ast.unparse(node.elts.pop(place))}"

    return change


def exchanged(place):
    """Return the change that exchanges the values of two adjacent assignments."""

    def change(node):
        one, two = node.elts[place : place + 2]
        text = f"{ast.unparse(one)} and {ast.unparse(two)} -> exchanged"
        one.args, two.args = two.args, one.args
        return text

    return change


def unnegated(field, place):
    """Return the change that removes a negation."""

    def change(node):
        holder = getattr(node, field)
        child = holder if place is None else holder[place]
        if place is None:
            setattr(node, field, child.operand)
        else:
            holder[place] = child.operand
        return f"{ast.unparse(child)} -> {ast.unparse(child.operand)}"

    return change


# Mutants: single changes in the source of a component, made in memory.


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
