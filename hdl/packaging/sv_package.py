# SPDX-License-Identifier: Apache-2.0
"""The SystemVerilog package of the words: places of fields, kinds, operations, and constructors."""

from hdl.shells.registers import hash_number

from .word_fields import enumerations, word_fields, words

__all__ = ["sv_package"]


def place_lines(prefix, word, title):
    """Return the lines about one word: its size, its type, and place of every field."""
    lines = [
        f"  // {title}",
        f"  localparam int unsigned {prefix}_BITS = {word['bits']};",
        f"  localparam int unsigned {prefix}_BYTES = {-(-word['bits'] // 8)};",
        f"  typedef logic [{prefix}_BITS-1:0] {prefix.lower()}_t;",
    ]
    for field in word_fields(word):
        own = f"{prefix}_{field.constant}"
        sign = "signed, " if field.signed else ""
        lines += [
            f"  // {sign}{field.meaning}",
            f"  localparam int unsigned {own}_OFFSET = {field.offset};",
            f"  localparam int unsigned {own}_BITS = {field.bits};",
        ]
    return lines


def enumeration_lines(name, title, values):
    """Return the lines of one enumeration."""
    bits = max(1, max(values.values()).bit_length())
    lines = [f"    {key} = {bits}'d{value}" for key, value in values.items()]
    return [
        f"  // {title}",
        f"  typedef enum logic [{bits - 1}:0] {{",
        *(f"{line}," for line in lines[:-1]),
        lines[-1],
        f"  }} {name.lower()}_e;",
    ]


def constructor(name, arguments, kind):
    """Return the lines of a function that makes an input word.

    Parameters
    ----------
    name : str
        Name of the function.
    arguments : list of (str, str, WordField)
        Name and type of every argument, and the field that it sets, or None.
    kind : str
        What goes into the field ``kind``.
    """
    listed = ",\n".join(f"    input {shape} {argument}" for argument, shape, _ in arguments)
    set_fields = [
        f"    {name}[INPUT_{field.constant}_OFFSET +: INPUT_{field.constant}_BITS] = {argument};"
        for argument, _, field in arguments
        if field is not None
    ]
    return [
        f"  function automatic input_t {name}(",
        f"{listed}",
        "  );",
        f"    {name} = '0;",
        f"    {name}[INPUT_KIND_OFFSET +: INPUT_KIND_BITS] = {kind};",
        *set_fields,
        "  endfunction",
    ]


def constructors(manifest):
    """Return the lines of the functions that make a tuple and a control word."""
    fields = {field.name: field for field in word_fields(manifest["input_word"])}

    def vector(field):
        return f"logic {'signed ' if field.signed else ''}[{field.bits - 1}:0]"

    arguments = [
        (name.replace(".", "_"), vector(field), field)
        for name, field in fields.items()
        if name.startswith(("key.", "tuple.")) or name in ("timestamp", "value")
    ]
    operation = [
        ("op", "op_e", fields["control.op"]),
        *(
            (name, vector(fields[f"control.{name}"]), fields[f"control.{name}"])
            for name in ("index", "value")
            if f"control.{name}" in fields
        ),
    ]
    title, kind = "A tuple of the side that `kind` says.", "kind"
    if "TUPLE" in manifest["input_kinds"]:
        title, kind = "A tuple.", "INPUT_KIND_TUPLE"
    else:
        arguments = [("kind", "input_kind_e", None), *arguments]
    return [
        f"  // {title}",
        *constructor("make_tuple", arguments, kind),
        "",
        "  // A control word.",
        *constructor("make_control", operation, "INPUT_KIND_CONTROL"),
    ]


def sv_package(manifest, names, table=None):
    """Return the SystemVerilog package ``{name}_pkg``.

    A field F of the input word is ``INPUT_F_OFFSET`` and ``INPUT_F_BITS``, one of the result word
    ``RESULT_F_…``. Fields without bits are left out. A register R is ``REG_R``, its byte address.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    table : RegisterTable or None
        Registers of the shell, if there is one.
    """
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Words of the accelerator with the hash {manifest['hash']}.",
        "// Generated, not to be edited.",
        f"package {names.name}_pkg;",
        "",
        "  // As the registers MANIFEST_HASH_0, in the lowest bits, to MANIFEST_HASH_7 show it.",
        f"  localparam logic [255:0] MANIFEST_HASH = 256'h{hash_number(manifest['hash']):064x};",
    ]
    for name, title, word in words(manifest):
        lines += ["", *place_lines(name, word, title)]
    for enumeration in enumerations(manifest):
        lines += ["", *enumeration_lines(*enumeration)]
    lines += ["", *constructors(manifest)]
    if table is not None:
        lines += ["", "  // Addresses of the registers"]
        lines += [
            f"  localparam logic [31:0] REG_{register.name} = 32'h{register.address:03x};"
            for register in table.registers
        ]
    return "\n".join([*lines, "", "endpackage", ""])
