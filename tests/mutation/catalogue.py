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


TARGETS = {
    "host/storage.py": Target(
        "which tuple a place in the hardware means", ("tests/host/test_storage.py",)
    ),
    "host/window.py": Target("which tuples a window holds", ("tests/host/test_window.py",)),
    "host/punctuation.py": Target(
        "where groups end and stars stand", ("tests/host/test_punctuation.py",)
    ),
    "host/reference.py": Target("the oracle itself", ("tests/host/test_reference.py",)),
}
