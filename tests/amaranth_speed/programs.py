# SPDX-License-Identifier: Apache-2.0
"""Compile the Python program of a simulated process once for all processes that are alike.

Amaranth's simulator writes a Python function for each clock domain of each module, and Python
compiles it: a tenth of the processor's time of tests that simulate components. Modules that are
instances of one component differ only by the numbers of their signals. So the numbers are replaced
by the order in which the signals occur, and a text that was compiled before is not compiled again.
The function reads its signals from variables of its own, and calls a signal's ``update`` only if
there is a change.
"""

import builtins
from functools import lru_cache
import re

from amaranth.sim import _pyrtl

__all__ = ["share_programs"]

#: A signal or memory of the simulation, or the next value of a signal.
NUMBERED = re.compile(r"\b(slots\[|next_)(\d+)\]?")
#: Number of compiled programs that a worker keeps, at the most.
KEPT = 1 << 14
#: The last statements of a program.
UPDATE = re.compile(r"^( *)(slot_\d+)\.update\((next_\d+), ", re.MULTILINE)
#: Functions that Amaranth's programs call; those that show text may contain anything.
HELPERS = {**_pyrtl._ValueCompiler.helpers, **_pyrtl._StatementCompiler.helpers}
SHOWING = ("print(", "pin_blame(", "value_to_string(")


def share_programs(monkeypatch):
    """Let processes that are alike share one compiled program.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """

    def compiled_later(code, filename, mode):
        return code if is_program(code) else builtins.compile(code, filename, mode)

    def execute(code, names):
        if isinstance(code, str):
            names["run"] = program_of(code, names["slots"])
        else:
            builtins.exec(code, names)

    monkeypatch.setattr(_pyrtl, "compile", compiled_later, raising=False)
    monkeypatch.setattr(_pyrtl, "exec", execute, raising=False)


def is_program(code):
    """Return whether a text is a program that can be shared."""
    return code.startswith("def run():") and not any(name in code for name in SHOWING)


def program_of(code, slots):
    """Return the function of a program that reads and writes the signals in ``slots``."""
    order = {}

    def rename(match):
        place = order.setdefault(match[2], len(order))
        return f"slot_{place}" if match[1] == "slots[" else f"next_{place}"

    text = NUMBERED.sub(rename, code)
    return maker_of(text, len(order))(*[slots[int(number)] for number in order])


@lru_cache(maxsize=KEPT)
def maker_of(text, count):
    """Return a function that makes the program of ``text`` for ``count`` signals."""
    text = UPDATE.sub(r"\1if \2.next != \3: \2.update(\3, ", text)
    arguments = ", ".join(f"slot_{n}" for n in range(count))
    body = "".join(f"    {line}\n" for line in text.splitlines())
    names = dict(HELPERS)
    exec(f"def make({arguments}):\n{body}    return run\n", names)
    return names["make"]
