# SPDX-License-Identifier: Apache-2.0
"""The SystemRDL 2.0 description of a table of registers."""

__all__ = ["system_rdl"]

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
