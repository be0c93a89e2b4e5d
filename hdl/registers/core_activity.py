# SPDX-License-Identifier: Apache-2.0
"""The registers that tell of every core whether it needs its clock, and whether it is vacant."""

from .bus import DATA_BITS
from .table import Field, Register

__all__ = ["MOST_CORES", "core_activity", "register_words"]

#: Names of the registers, their addresses, and what a bit of them says of a core.
KINDS = {
    "CLOCK_REQUEST": (0x080, "needs the next clock edge"),
    "VACANT": (0x0C0, "holds no tuple of either window"),
}
#: Cores for which there are addresses.
MOST_CORES = 16 * DATA_BITS


def register_words(cores):
    """Return the number of registers that have a bit for each core."""
    return -(-cores // DATA_BITS)


def core_activity(cores):
    """Return the registers of an accelerator with so many cores and with clock requests.

    Raises
    ------
    ValueError
        If there are more than :data:`MOST_CORES` cores.
    """
    if cores > MOST_CORES:
        raise ValueError(
            f"Registers of a shell tell of the clock requests of at most {MOST_CORES} cores, not "
            f"{cores}; generate the accelerator without clock requests, or without a shell"
        )
    return [
        Register(
            name=f"{name}_{n}", address=address + 4 * n,
            description=f"Which of the cores from {DATA_BITS * n} on {says}.",
            fields=(
                Field(name="CORES", offset=0, bits=min(DATA_BITS, cores - DATA_BITS * n),
                      description=f"Bit 0 is that of core {DATA_BITS * n}."),
            ),
        )
        for name, (address, says) in KINDS.items()
        for n in range(register_words(cores))
    ]  # fmt: skip
