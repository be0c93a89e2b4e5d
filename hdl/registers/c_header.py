# SPDX-License-Identifier: Apache-2.0
"""The C header of a table of registers."""

__all__ = ["c_header"]


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
