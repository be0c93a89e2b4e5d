# SPDX-License-Identifier: Apache-2.0
"""The texts of an accelerator, which a run of the tests generates once for all its workers.

To generate takes four to ten seconds of a processor, and tests of several files use the same
accelerators. What one of them has generated is kept in a folder that belongs to this run alone, so
nothing outlives a change of the sources.
"""

import fcntl
from functools import lru_cache
from hashlib import sha256

__all__ = ["kept_in"]

#: Number of accelerators whose texts a worker keeps in memory.
KEPT = 4


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
