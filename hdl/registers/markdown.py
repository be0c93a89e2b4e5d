# SPDX-License-Identifier: Apache-2.0
"""The Markdown tables of a table of registers."""

from .table import ACCESSES

__all__ = ["markdown"]


def bits_of(field):
    """Return the bits of a field in words: ``8``, or ``15:8``."""
    top = field.offset + field.bits - 1
    return str(top) if field.bits == 1 else f"{top}:{field.offset}"


def row(*cells):
    """Return a row of a table."""
    return " | ".join(["", *(cell.replace("|", "&#124;") for cell in cells), ""]).strip()


def markdown(table, *, title):
    """Return a page with one table of all fields.

    Parameters
    ----------
    table : RegisterTable
    title : str
        Heading of the page.
    """
    lines = [
        f"# {title}",
        "",
        "Registers have 32 bits, and addresses are in bytes.",
        "Bits that are not listed read as zero, and writes to them do nothing.",
        "",
        *(f"- `{access}`: {meaning}" for access, meaning in ACCESSES.items()),
        "",
        row("address", "register", "bits", "field", "access", "after reset", "meaning"),
        "|---|---|---|---|---|---|---|",
    ]
    for register in table.registers:
        lines.append(
            row(f"0x{register.address:03X}", f"**{register.name}**", "", "", "", "",
                register.description)
        )  # fmt: skip
        for field in register.fields:
            known = field.reset is not None
            reset = (f"0x{field.reset:X}" if field.reset > 9 else str(field.reset)) if known else ""
            lines.append(
                row("", "", bits_of(field), field.name, field.access, reset, field.description)
            )
    return "\n".join([*lines, ""])
