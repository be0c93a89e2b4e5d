# SPDX-License-Identifier: Apache-2.0
"""A table of registers: the only source of the register file and of every text about it."""

from dataclasses import dataclass
import re

from .bus import ADDRESS_BITS, DATA_BITS

__all__ = ["ACCESSES", "Field", "Register", "RegisterTable"]

#: What software can do with a field, by its short name.
ACCESSES = {
    "ro": "read",
    "rw": "read and write",
    "w1c": "read; writing one clears it",
    "wo": "writing one acts for one cycle; reads as zero",
}

#: Bytes from one register to the next one.
STRIDE = DATA_BITS // 8
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


def check_name(name, what):
    """Raise :exc:`ValueError` unless ``name`` is in capitals, with single underscores."""
    if not NAME.fullmatch(name):
        raise ValueError(f"Name of a {what} must be in capitals, such as 'RESET', not {name!r}")


@dataclass(frozen=True, kw_only=True)
class Field:
    """Some neighbouring bits of a register.

    Parameters
    ----------
    name : str
        Name in capitals.
    offset, bits : int
        Lowest bit, and number of bits.
    access : str
        One of :data:`ACCESSES`.
    description : str
        A sentence for the user.
    reset : int or None
        Value after reset. For ``ro``, a number is the constant that the field always shows, and
        None says that the hardware drives the field.
    """

    name: str
    offset: int
    bits: int = 1
    access: str = "ro"
    description: str
    reset: int | None = None

    def __post_init__(self):
        check_name(self.name, "field")
        if self.access not in ACCESSES:
            raise ValueError(
                f"Access of field {self.name} must be one of {', '.join(ACCESSES)}, "
                f"not {self.access!r}"
            )
        if self.bits < 1 or self.offset < 0 or self.offset + self.bits > DATA_BITS:
            raise ValueError(
                f"Field {self.name} must lie within bits 0 to {DATA_BITS - 1} of its register, "
                f"not at bit {self.offset} with {self.bits} bits"
            )
        if self.access != "ro" and self.reset is None:
            object.__setattr__(self, "reset", 0)
        if self.access in ("w1c", "wo") and self.reset:
            raise ValueError(f"Field {self.name} of access {self.access!r} must be zero on reset")
        if self.reset is not None and not 0 <= self.reset < 1 << self.bits:
            raise ValueError(
                f"Reset value of field {self.name} must fit {self.bits} bits, not {self.reset}"
            )

    @property
    def mask(self):
        """Return the bits of the field in its register, as a number."""
        return ((1 << self.bits) - 1) << self.offset


@dataclass(frozen=True, kw_only=True)
class Register:
    """A register of 32 bits.

    Parameters
    ----------
    name : str
        Name in capitals.
    address : int
        Byte address, a multiple of four.
    description : str
        A sentence for the user.
    fields : tuple of Field
        Fields from the lowest bit on, without overlap.
    stored : bool
        Whether the value comes from a memory beside the register file. The fields are then ``ro``.
    """

    name: str
    address: int
    description: str
    fields: tuple[Field, ...]
    stored: bool = False

    def __post_init__(self):
        check_name(self.name, "register")
        if self.address % STRIDE or not 0 <= self.address < 1 << ADDRESS_BITS:
            raise ValueError(
                f"Address of register {self.name} must be a multiple of {STRIDE} "
                f"below {1 << ADDRESS_BITS:#x}, not {self.address:#x}"
            )
        if not self.fields:
            raise ValueError(f"Register {self.name} must have at least one field")
        end, names = 0, set()
        for field in self.fields:
            if field.offset < end:
                raise ValueError(
                    f"Field {field.name} of register {self.name} must begin at bit {end} or "
                    f"above, not at bit {field.offset}: fields stand in order, without overlap"
                )
            if field.name in names:
                raise ValueError(f"Register {self.name} must have one field {field.name}, not two")
            if self.stored and (field.access != "ro" or field.reset is not None):
                raise ValueError(
                    f"Field {field.name} of the stored register {self.name} must be 'ro' and no "
                    f"constant"
                )
            end = field.offset + field.bits
            names.add(field.name)

    @property
    def access(self):
        """Return the accesses of the fields, in the order of :data:`ACCESSES`."""
        return tuple(kind for kind in ACCESSES if any(f.access == kind for f in self.fields))

    @property
    def is_writable(self):
        """Return whether a write is accepted."""
        return self.access != ("ro",)

    @property
    def reset(self):
        """Return the value after reset, or None if the hardware drives a part of it."""
        if any(field.reset is None for field in self.fields):
            return None
        return sum(field.reset << field.offset for field in self.fields)


@dataclass(frozen=True)
class RegisterTable:
    """Registers in the order of their addresses.

    Parameters
    ----------
    name : str
        Name for texts in other languages, in lower case, such as ``"splitjoin"``.
    registers : tuple of Register
    """

    name: str
    registers: tuple[Register, ...]

    def __post_init__(self):
        if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", self.name):
            raise ValueError(f"Name of a table must be in lower case, not {self.name!r}")
        names = set()
        for register in self.registers:
            if register.name in names:
                raise ValueError(f"Table {self.name} must have one {register.name}, not two")
            names.add(register.name)
        for before, after in zip(self.registers, self.registers[1:], strict=False):
            if after.address <= before.address:
                raise ValueError(
                    f"Register {after.name} at {after.address:#x} must come behind {before.name} "
                    f"at {before.address:#x}: registers stand in order, without overlap"
                )

    def __getitem__(self, name):
        """Return the register with a name."""
        for register in self.registers:
            if register.name == name:
                return register
        raise KeyError(name)

    def describe(self):
        """Return the table as JSON-compatible values, which is its part of a manifest."""
        return [
            {
                "name": register.name,
                "address": register.address,
                "description": register.description,
                "fields": [
                    {
                        "name": field.name,
                        "offset": field.offset,
                        "bits": field.bits,
                        "access": field.access,
                        "reset": field.reset,
                        "description": field.description,
                    }
                    for field in register.fields
                ],
            }
            for register in self.registers
        ]
