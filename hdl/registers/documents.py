# SPDX-License-Identifier: Apache-2.0
"""What is written from the table of registers: C, SystemRDL and Markdown."""

from .table import ACCESSES

__all__ = ["c_header", "markdown", "register_texts", "system_rdl"]


def c_header(table, *, title, texts=None):
    """Return a C header with the address of every register, and place and values of every field.

    For a register ``R`` and its field ``F`` there are ``{TABLE}_R`` (byte address),
    ``{TABLE}_R_F_OFFSET``, ``{TABLE}_R_F_MASK`` and, if it is known, ``{TABLE}_R_F_RESET`` (value
    after reset; of a read-only field, its constant). The names need no type, and every value fits
    ``uint32_t``.

    Parameters
    ----------
    table : RegisterTable
    title : str
        One line for the comment at the beginning.
    texts : dict of str to str, optional
        Further names, with the texts that they stand for.
    """
    prefix = table.name.upper()
    guard = f"{prefix}_REGISTERS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* {title}. Generated, not to be edited. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        *(f'#define {prefix}_{name} "{text}"' for name, text in (texts or {}).items()),
    ]
    for register in table.registers:
        name = f"{prefix}_{register.name}"
        lines += ["", f"/* {register.description} */", f"#define {name} 0x{register.address:03X}u"]
        for field in register.fields:
            own = f"{name}_{field.name}"
            lines += [
                f"/* {field.access}: {field.description} */",
                f"#define {own}_OFFSET {field.offset}u",
                f"#define {own}_MASK 0x{field.mask:08X}u",
            ]
            if field.reset is not None:
                lines.append(f"#define {own}_RESET 0x{field.reset:X}u")
    return "\n".join([*lines, "", f"#endif /* {guard} */", ""])


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


#: Properties of a field, by its access. Hardware drives what software only reads.
PROPERTIES = {
    "ro": ("sw = r", "hw = w"),
    "rw": ("sw = rw", "hw = r"),
    "w1c": ("sw = rw", "onwrite = woclr", "hw = w", "hwset"),
    "wo": ("sw = w", "hw = r", "singlepulse"),
}


def quoted(text):
    """Return a text as a SystemRDL string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def properties(field):
    """Return the properties of a field."""
    if field.access == "ro" and field.reset is not None:
        return ("sw = r", "hw = na")
    # A pulse is one bit wide in SystemRDL.
    if field.access == "wo" and field.bits > 1:
        return PROPERTIES["wo"][:2]
    return PROPERTIES[field.access]


def system_rdl(table, *, title):
    """Return an ``addrmap`` with all registers of a table.

    Parameters
    ----------
    table : RegisterTable
    title : str
        One line for the comment at the beginning.
    """
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// {title}. Generated, not to be edited.",
        f"addrmap {table.name} {{",
        "    default regwidth = 32;",
        "    default accesswidth = 32;",
        "    default addressing = compact;",
    ]
    for register in table.registers:
        lines += ["    reg {", f"        desc = {quoted(register.description)};"]
        for field in register.fields:
            own = "; ".join([*properties(field), f"desc = {quoted(field.description)}"])
            reset = "" if field.reset is None else f" = {field.bits}'h{field.reset:x}"
            top = field.offset + field.bits - 1
            lines.append(f"        field {{ {own}; }} {field.name}[{top}:{field.offset}]{reset};")
        lines.append(f"    }} {register.name} @ 0x{register.address:03X};")
    return "\n".join([*lines, "};", ""])


def register_texts(table, *, title, digest):
    """Return suffix and text of each file about the registers of a shell, by what it is.

    Parameters
    ----------
    table : hdl.registers.table.RegisterTable
        The registers.
    title : str
        First line of each text.
    digest : str
        Hash of the manifest, which the C header has as a constant.
    """
    return {
        "c_header": (".h", c_header(table, title=title, texts={"MANIFEST_HASH": digest})),
        "system_rdl": (".rdl", system_rdl(table, title=title)),
        "markdown": (".md", markdown(table, title=title)),
    }
