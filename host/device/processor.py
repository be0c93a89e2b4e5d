# SPDX-License-Identifier: Apache-2.0
"""The processor that a compiled file is for, from its ELF header (Linux and most other Unixes)."""

from functools import cache
import sys

__all__ = ["processor_of", "this_processor"]

#: Names of processors by the header's field ``e_machine``.
NAMES = {
    3: "x86",
    8: "MIPS",
    21: "POWER",
    22: "IBM Z",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}

#: Number of bytes of a file that :func:`processor_of` reads.
HEADER = 20


def processor_of(contents: bytes) -> str | None:
    """Return the processor that an ELF file is for; None if ``contents`` is not an ELF file."""
    if len(contents) < HEADER or contents[:4] != b"\x7fELF":
        return None
    order = "big" if contents[5] == 2 else "little"
    code = int.from_bytes(contents[18:20], "big" if order == "big" else "little")
    name = NAMES.get(code, f"processor {code}")
    return f"{name} ({64 if contents[4] == 2 else 32} bits, {order}-endian)"


@cache
def this_processor() -> str | None:
    """Return the processor that this Python runs on; None if its executable does not tell."""
    try:
        with open(sys.executable, "rb") as program:
            return processor_of(program.read(HEADER))
    except OSError:
        return None
