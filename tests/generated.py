# SPDX-License-Identifier: Apache-2.0
"""The texts of an accelerator and headers, which a run makes once for all its workers.

To generate takes four to ten seconds of a processor, and tests of several files use the same
accelerators. What one of them has generated is kept in a folder that belongs to this run alone, so
nothing outlives a change of the sources.
"""

import fcntl
from functools import lru_cache
from hashlib import sha256
import subprocess

__all__ = ["compiled_headers", "kept_in"]

#: Number of accelerators whose texts a worker keeps in memory.
KEPT = 4
#: What every Verilated model includes.
HEADERS = ("cstdint", "cstring", "deque", "memory", "vector", "verilated.h")


def compiled_headers(path, level):
    """Return the path of a header of all that models include, compiled before they are.

    Parameters
    ----------
    path : Path
        The header, which the first of several processes writes.
    level : str
        Optimization of the files that include it; with another one, they read its text.
    """
    from sim.verilated.model import flags_of
    from sim.verilated.toolchain import find_toolchain

    tools = find_toolchain()
    with path.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the system unlocks it when it is closed
        if not path.exists():
            path.write_text("".join(f"#include <{name}>\n" for name in HEADERS), encoding="utf-8")
            command = [tools.compiler, *flags_of(tools), level, "-x", "c++-header", path.name]
            subprocess.run(command, cwd=path.parent, check=True)
    return path


def kept_in(folder, generate):
    """Return a function that does what ``generate`` does, once for all that share ``folder``.

    Parameters
    ----------
    folder : Path
        The folder.
    generate : callable
        Returns Verilog and netlist for parameters without a function of their own.
    """
    folder.mkdir(exist_ok=True)

    @lru_cache(maxsize=KEPT)
    def generated(parameters):
        name = sha256(repr(parameters).encode()).hexdigest()
        paths = [folder / f"{name}.{suffix}" for suffix in ("v", "json")]
        with (folder / f"{name}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the system unlocks it when it is closed
            if not paths[1].exists():
                for path, text in zip(paths, generate(parameters), strict=True):
                    path.with_suffix(".new").write_text(text, encoding="utf-8")
                    path.with_suffix(".new").replace(path)
        return tuple(path.read_text(encoding="utf-8") for path in paths)

    return generated
