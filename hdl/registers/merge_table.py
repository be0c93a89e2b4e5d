# SPDX-License-Identifier: Apache-2.0
"""The registers of a shell whose inputs are merged."""

from .table import Field, Register

__all__ = ["MASK_BITS", "TWO_SIDES", "exclusions", "mask_names", "merge_registers"]

#: Names of two inputs, one for each side of a join, which CONTROL excludes.
TWO_SIDES = ("R", "S")
#: Inputs that a register with a bit for each input has room for.
MASK_BITS = 32
#: Addresses of the counters of stalled cycles: of two sides, and of the first of other inputs.
STALLS_OF_TWO = (0x058, 0x05C)
STALLS_OF_MORE = 0x400
#: Registers with a bit for each of other inputs: name, address, access and description.
MASKS = (
    ("EXCLUDE_INPUTS", 0x060, "wo", "Exclude these inputs, if they have no word, until they have."),
    ("LATE_INPUTS", 0x068, "w1c", "These inputs sent a tuple older than what had been reached."),
    ("EXCLUDED_INPUTS", 0x070, "w1c", "These inputs stalled and were excluded."),
)


def mask_names(mask, merged):
    """Return the registers of :data:`MASKS` that a mask of the inputs takes, the lowest first."""
    return [f"{mask}_{n}" for n in range(-(-len(merged) // MASK_BITS))]


def exclusions(merged):
    """Return the fields of CONTROL that exclude one of two inputs."""
    return [
        Field(name=f"EXCLUDE_{side}", offset=offset, access="wo",
              description=f"Exclude {side}'s input, if it has no word, until its next word.")
        for side, offset in (("R", 2), ("S", 3))
        if tuple(merged) == TWO_SIDES
    ]  # fmt: skip


def merge_registers(merged):
    """Return the registers of the merge.

    Parameters
    ----------
    merged : sequence of str
        Names of the inputs (:meth:`hdl.families.family.Family.inputs`).
    """
    if not merged:
        return []
    two = tuple(merged) == TWO_SIDES
    waits = "that the other one waits for" if two else "that the others wait for"
    addresses = STALLS_OF_TWO if two else range(STALLS_OF_MORE, STALLS_OF_MORE + 4 * len(merged), 4)
    return [
        Register(
            name="STALL_DEADLINE", address=0x054,
            description=f"When an input is excluded {waits}.",
            fields=(
                Field(name="CYCLES", offset=0, bits=32, access="rw",
                      description="Stalled cycles on end; zero for never."),
            ),
        ),
        *(() if two else masks(merged)),
        *(
            Register(
                name=f"STALLS_{name}", address=address,
                description=f"Cycles in which input {name} was waited for.",
                fields=(
                    Field(name="CYCLES", offset=0, bits=32,
                          description="Counts from reset on, and wraps."),
                ),
            )
            for name, address in zip(merged, addresses, strict=True)
        ),
    ]  # fmt: skip


def masks(merged):
    """Return the registers with a bit for each input."""
    return [
        Register(
            name=name, address=address + 4 * n, description=description,
            fields=tuple(
                Field(name=one, offset=offset, access=access, description=f"Input {one}.")
                for offset, one in enumerate(merged[MASK_BITS * n : MASK_BITS * (n + 1)])
            ),
        )
        for mask, address, access, description in MASKS
        for n, name in enumerate(mask_names(mask, merged))
    ]  # fmt: skip
