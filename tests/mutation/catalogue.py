# SPDX-License-Identifier: Apache-2.0
"""Which modules are mutated, which tests have to notice, and which mutants nobody can notice."""

from dataclasses import dataclass, field

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """A module and the tests that its mutants are run against.

    Parameters
    ----------
    why : str
        What of an answer the module decides.
    tests : tuple of str
        Test files, each a matter of seconds.
    equivalent : dict of str to str
        Statements of mutants that no answer can tell from the original, each with the reason. A
        statement may be cut short where what is left is clear.
    """

    why: str
    tests: tuple[str, ...]
    equivalent: dict[str, str] = field(default_factory=dict)


#: Reasons that several modules share.
QUICKER = "when the quicker way is taken, and how far: the other one has the same answer"
LEFT = "the left side is what is searched by default"
FASTER = "a shorter way for common cases: the longer one has the same answer"
NARROWER = "more candidates: each is compared and looked for in the window anyway"
STRICT = "the lengths are equal; `strict` would only tell if they were not"

TARGETS = {
    "host/storage.py": Target(
        "which tuple a place in the hardware means",
        ("tests/host/test_storage.py",),
        {
            "if self.cores > 1 or True": FASTER,
            "if self.cores >= 1": FASTER,
            "if self.lanes > 1 or True": FASTER,
            "if self.lanes >= 1": FASTER,
            "& self.slots - 1 and False": FASTER,
            "if not self.slots | self.slots - 1": FASTER,
            "if not self.slots & self.slots - 2": "zero for powers of two only",
            "if divisor | divisor - 1": FASTER,
            "if divisor & divisor - 2": "zero for powers of two only, and all but one",
            "if divisor > 1 or True": "a shift by no bits",
            "if divisor >= 1": "a shift by no bits",
        },
    ),
    "host/window.py": Target(
        "which tuples a window holds",
        ("tests/host/test_window.py",),
        {"np.searchsorted(stored, oldest).astype": LEFT},
    ),
    "host/punctuation.py": Target(
        "where groups end and stars stand",
        ("tests/host/test_punctuation.py",),
        {
            "alone, patience =": QUICKER,
            "if alone:": QUICKER,
            "alone += 1": QUICKER,
            "limits[:int(np.searchsorted(limits, left))]": QUICKER,
            "np.zeros(2, np.int64), limits[:-1]": QUICKER,
            "in_time = ends + lasts": QUICKER,
            "stored / cores": "of tuples of one core, both quotients have the same order",
            "kind='STABLE'": "NumPy takes the name in any case",
            "np.arange(len(ends[side]) + 2)": "one limit more than anybody reads",
            "strict=None": STRICT,
            "limits[1:]))": STRICT,
            "limits[1:], strict=True": "nobody asks for more than there are groups",
            "zip(part.side, part.probes, part.star)": STRICT,
            "part.star, strict=False)": STRICT,
        },
    ),
    "host/reference.py": Target(
        "the oracle itself",
        ("tests/host/test_reference.py",),
        {
            "top = None": NARROWER,
            "candidates(None, side": NARROWER,
            "np.where(None, first": NARROWER,
            "np.argsort(values)": "the order of equal values is not looked at",
            "np.searchsorted(ordered, lowest).astype": LEFT,
            "begin, done = (0, 1)": "blocks of another size",
        },
    ),
    "host/streams/results.py": Target(
        "which rows a result of the hardware means", ("tests/host/streams/test_results.py",)
    ),
}
