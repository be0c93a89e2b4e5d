# SPDX-License-Identifier: Apache-2.0
"""The registers of every shell around an accelerator."""

from hdl.families.choice import family_of
from hdl.families.family import Fault

from .core_activity import core_activity
from .merge_table import exclusions, merge_registers
from .table import Field, Register, RegisterTable

__all__ = ["COUNTERS_ADDRESS", "HASH_WORDS", "MAGIC", "VERSION", "shell_table", "word_bytes"]

#: Value of ID: the letters "SJKT", the first one in the lowest byte.
MAGIC = int.from_bytes(b"SJKT", "little")
#: Version of the register map (major, minor). The minor number rises when registers are added, the
#: major number when software that knows an earlier map would go wrong.
VERSION = (1, 2)
#: Registers of 32 bits that hold the hash of the manifest.
HASH_WORDS = 8
#: Address of the lower half of counter 0. Every counter takes eight bytes.
COUNTERS_ADDRESS = 0x100
#: The fault that a shell finds by itself.
TORN = Fault("INPUT", 6, "An input word came without all of its bytes, and was dropped.")


def word_bytes(layout):
    """Return the number of bytes that a word takes at the pins of a shell."""
    return -(-layout.size // 8)


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


def capabilities(family, merged):
    """Return the registers that say what kind of accelerator this is."""
    return [
        Register(
            name="WORDS", address=0x008, description="Words at the pins.",
            fields=(
                constant("INPUT_BYTES", 0, 8, word_bytes(family.input_word),
                         "Bytes of an input word."),
                constant("RESULT_BYTES", 8, 8, word_bytes(family.result_word),
                         "Bytes of a result word."),
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


def shell_table(parameters, *, merged=()):
    """Return the registers of a shell around the accelerator with ``parameters``.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    merged : sequence of str
        Names of the inputs that are merged (:meth:`hdl.families.family.Family.inputs`); none if all
        words come by one port.

    Returns
    -------
    RegisterTable
    """
    family = family_of(parameters)
    registers = (
        *identity(),
        *capabilities(family, merged),
        *manifest_hash(),
        *control(family, merged),
        *merge_registers(merged),
        *(core_activity(parameters.cores) if family.core_bits else ()),
        *counters(family),
    )
    return RegisterTable("splitjoin", tuple(sorted(registers, key=lambda one: one.address)))
