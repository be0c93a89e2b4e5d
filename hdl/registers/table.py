# SPDX-License-Identifier: Apache-2.0
"""The table of registers of an accelerator, of a shell and of a merge."""

from dataclasses import dataclass
import re

from hdl.families.choice import family_of
from hdl.families.family import Fault

from .bus import ADDRESS_BITS, DATA_BITS

__all__ = [
    "ACCESSES",
    "COUNTERS_ADDRESS",
    "HASH_WORDS",
    "MAGIC",
    "MASK_BITS",
    "MOST_CORES",
    "TWO_SIDES",
    "VERSION",
    "Field",
    "Register",
    "RegisterTable",
    "core_activity",
    "exclusions",
    "mask_names",
    "merge_registers",
    "register_words",
    "shell_table",
    "word_bytes",
]


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


#: Value of ID: the letters "SJKT", the first one in the lowest byte.
MAGIC = int.from_bytes(b"SJKT", "little")
#: Version of the register map (major, minor). The minor number rises when registers are added, the
#: major number when software that knows an earlier map would go wrong.
VERSION = (1, 3)
#: Registers of 32 bits that hold the hash of the manifest.
HASH_WORDS = 8
#: Address of the lower half of the base address of external memory.
MEMORY_BASE_ADDRESS = 0x010
#: Address of the lower half of counter 0. Every counter takes eight bytes.
COUNTERS_ADDRESS = 0x100
#: The fault that a shell finds by itself.
TORN = Fault("INPUT", 6, "An input word came without all of its bytes, and was dropped.")


def word_bytes(bits, *, is_row=False):
    """Return the number of bytes that a word of so many ``bits`` takes at the pins of a shell.

    With ``is_row``, it takes whole 64-bit numbers, and a power of two of them.
    """
    return 8 << (-(-bits // 64) - 1).bit_length() if is_row else -(-bits // 8)


def constant(name, offset, bits, value, description):
    """Return a field that always shows ``value``."""
    return Field(name=name, offset=offset, bits=bits, reset=value, description=description)


def identity():
    """Return the registers that say what this is."""
    major, minor = VERSION
    return [
        Register(
            name="ID", address=0x000, description="Identifies the register map.",
            fields=(constant("MAGIC", 0, 32, MAGIC, f"Always {MAGIC:#010x}, the letters SJKT."),),
        ),
        Register(
            name="VERSION", address=0x004, description="Version of the register map.",
            fields=(
                constant("MINOR", 0, 16, minor, "Rises when registers are added."),
                constant("MAJOR", 16, 16, major, "Rises when existing software would go wrong."),
            ),
        ),
    ]  # fmt: skip


def capabilities(family, merged, is_row):
    """Return the registers that say what kind of accelerator this is."""
    input_bytes, result_bytes = (
        word_bytes(word.size, is_row=is_row) for word in (family.input_word, family.result_word)
    )
    return [
        Register(
            name="WORDS", address=0x008, description="Words at the pins.",
            fields=(
                constant("INPUT_BYTES", 0, 8, input_bytes, "Bytes of an input word."),
                constant("RESULT_BYTES", 8, 8, result_bytes, "Bytes of a result word."),
                constant("TUPLES", 16, 4, family.most_tuples,
                         "Most tuples in an input word, and most results in a result word."),
                constant("RESULT_PORTS", 20, 4, len(family.result_ports),
                         "Ports that results leave by."),
                constant("INPUT_PORTS", 24, 8, max(1, len(merged)),
                         "Ports that input words come by."),
            ),
        ),
        Register(
            name="ENGINE", address=0x00C, description="What was generated.",
            fields=tuple(
                constant(trait.name, trait.offset, trait.bits, trait.value, trait.description)
                for trait in family.traits
            ),
        ),
    ]  # fmt: skip


def memory_base(place):
    """Return the registers of the base address of a memory that all regions share.

    Parameters
    ----------
    place : BaseAddress or None
    """
    if place is None:
        return []
    halves = (("LO", 0, "lower"), ("HI", DATA_BITS, "upper"))
    return [
        Register(
            name=f"MEMORY_BASE_{half}", address=MEMORY_BASE_ADDRESS + least // 8,
            description=f"Address of the external memory of all regions, {which} 32 bits.",
            fields=(
                Field(name="ADDRESS", offset=offset, bits=DATA_BITS - offset, access="rw",
                      description=f"A multiple of {1 << place.least_bit:#x}; region n begins "
                      f"n * {1 << place.ring_bits:#x} bytes behind it. Change it only while "
                      "windows are empty."),
            ),
        )
        for half, least, which in halves
        if (offset := max(0, place.least_bit - least)) < DATA_BITS
    ]  # fmt: skip


def manifest_hash():
    """Return the registers with the hash of the manifest."""
    return [
        Register(
            name=f"MANIFEST_HASH_{n}", address=0x020 + 4 * n,
            description=f"Bytes {4 * n} to {4 * n + 3} of the manifest's hash.",
            fields=(
                Field(name="BYTES", offset=0, bits=32,
                      description=f"Byte {4 * n} of the hash is in the lowest byte."),
            ),
        )
        for n in range(HASH_WORDS)
    ]  # fmt: skip


def errors(family, merged):
    """Return the faults that ERRORS shows, in order."""
    return (*family.faults, TORN, *(family.merge_faults(merged) if merged else ()))


def control(family, merged):
    """Return the registers that software works with."""
    return [
        Register(
            name="CONTROL", address=0x040, description="Commands.",
            fields=(
                Field(name="RESET", offset=0, access="wo",
                      description="Reset the accelerator. Registers keep their values."),
                Field(name="SNAPSHOT", offset=1, access="wo",
                      description="Copy all counters, to be read below."),
                *exclusions(merged),
                Field(name="ENABLE", offset=8, access="rw", reset=1,
                      description="While zero, no input word is taken."),
            ),
        ),
        Register(
            name="STATUS", address=0x044, description="What is going on.",
            fields=(
                Field(name="BUSY", offset=0,
                      description="A mark is owed for a control word that was taken."),
                Field(name="INPUT_WAITING", offset=1,
                      description="An input word waits."),
                Field(name="OUTPUT_WAITING", offset=2,
                      description="A result word is offered and not taken."),
                Field(name="RESETTING", offset=3,
                      description="The accelerator is being reset, and takes no word."),
            ),
        ),
        Register(
            name="ERRORS", address=0x048, description="What has gone wrong since it was cleared.",
            fields=tuple(
                Field(name=fault.name, offset=fault.bit, access="w1c",
                      description=fault.description)
                for fault in errors(family, merged)
            ),
        ),
        Register(
            name="INTERRUPT_ENABLE", address=0x04C,
            description="Which bits of INTERRUPT_STATUS raise the interrupt.",
            fields=(
                Field(name="MARK", offset=0, access="rw", description="A mark has left."),
                Field(name="ERROR", offset=1, access="rw", description="ERRORS is not zero."),
            ),
        ),
        Register(
            name="INTERRUPT_STATUS", address=0x050, description="Why there is an interrupt.",
            fields=(
                Field(name="MARK", offset=0, access="w1c",
                      description="A mark has been taken at every result port."),
                Field(name="ERROR", offset=1,
                      description="ERRORS is not zero. Clear ERRORS to clear this bit."),
            ),
        ),
    ]  # fmt: skip


def counters(family):
    """Return the registers of the counters, two for each."""
    return [
        Register(
            name=f"{counter.name.upper()}_{half}",
            address=COUNTERS_ADDRESS + 8 * counter.address + 4 * n,
            description=f"Counter {counter.name}, {words} bits: {counter.description}.",
            fields=(
                Field(name="VALUE", offset=0, bits=32,
                      description="As of the last snapshot."),
            ),
            stored=True,
        )
        for counter in family.counters
        for n, (half, words) in enumerate([("LO", "lower 32"), ("HI", "upper 32")])
    ]  # fmt: skip


def shell_table(parameters, *, merged=(), is_row=False):
    """Return the registers of a shell around the accelerator with ``parameters``.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    merged : sequence of str
        Names of the inputs that are merged (:meth:`hdl.families.family.Family.inputs`); none if all
        words come by one port.
    is_row : bool
        See :func:`word_bytes`.

    Returns
    -------
    RegisterTable
    """
    family = family_of(parameters)
    registers = (
        *identity(),
        *capabilities(family, merged, is_row),
        *memory_base(family.memory_base),
        *manifest_hash(),
        *control(family, merged),
        *merge_registers(merged),
        *(core_activity(parameters.cores) if family.core_bits else ()),
        *counters(family),
    )
    return RegisterTable("splitjoin", tuple(sorted(registers, key=lambda one: one.address)))
