# SPDX-License-Identifier: Apache-2.0
"""Headers of an accelerator's words and registers in C and SystemVerilog."""

from dataclasses import dataclass
import re

from hdl.shells.registers import hash_number
from hdl.verilog.conversion import KEYWORDS

__all__ = [
    "DEFAULT_PREFIX",
    "PackageNames",
    "bytes_of",
    "WordField",
    "enumerations",
    "input_streams",
    "result_streams",
    "sv_package",
    "what_it_is",
    "with_orders",
    "word_fields",
    "words",
    "words_header",
]


#: Prefix of the kit's own modules, unless another one is asked for.
DEFAULT_PREFIX = "splitjoin_"

LEGAL = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_")


@dataclass(frozen=True)
class PackageNames:
    """Names that begin with one prefix, so that they meet no other name in a design.

    Parameters
    ----------
    prefix : str
        What the names of all modules begin with, such as ``"trades_"``: lower-case letters, digits
        and single underscores, the last one at the end.
    """

    prefix: str = DEFAULT_PREFIX

    def __post_init__(self):
        if not LEGAL.fullmatch(self.prefix):
            raise ValueError(
                f"Module prefix must be in lower case and end in one underscore, such as "
                f"{DEFAULT_PREFIX!r}, not {self.prefix!r}"
            )
        if self.name in KEYWORDS:
            raise ValueError(
                f"Module prefix {self.prefix!r} makes the name {self.name!r}, which is a reserved "
                f"word of SystemVerilog; choose another prefix"
            )

    @property
    def name(self):
        """Return the name of the package, which its files begin with."""
        return self.prefix.removesuffix("_")

    @property
    def macro(self):
        """Return what the constants of the C header begin with."""
        return self.prefix.upper()

    def top(self, shell):
        """Return the name of the top module: that of a shell, or of the bare accelerator."""
        return self.name if shell is None else f"{self.prefix}{shell}"


#: What the fields of both words mean, by the last part of their names that is listed here.
MEANINGS = {
    "kind": "kind of the word",
    "first": "of two tuples: the side of the one that comes first, 0 for R, 1 for S",
    "timestamp": "of a tuple: its time",
    "value": "of a tuple of S: its value, which matches are reduced by",
    "control.op": "of a control word: its operation",
    "control.index": "of a control word: the field, side or part that it is about",
    "control.value": "of a control word: its value",
    "side": "side of the probe: 0 for R, 1 for S",
    "probe": "of a pair: number of the probe among those of its side since the last star",
    "lane": "of a pair: lane in which the partner is stored",
    "row": "of a pair: row in which the partner is stored",
    "core": "of a pair: core that stores the partner",
    "r": "of a pair: number of its tuple of R since CLEAR",
    "s": "of a pair: number of its tuple of S since CLEAR",
    "value.probe": "of a value: number of its tuple of R since the last star",
    "value.count": "of a value: how many tuples of S match",
    "value.total": "of a value: the sum of their values",
    "value.least": "of a value: the least of them",
    "value.most": "of a value: the greatest of them",
    "overflow": "of a star or mark: the window of R (bit 0) or S (bit 1) has overflowed",
    "disorder": "of a star or mark: time went backwards",
    "illegal": "of a star or mark: a word was illegal",
    "inner": "of a star: it ends a round",
    "failed": "of a star or mark: results of a failed core are missing",
    "failed_parity": "of a star or mark: sides (bit 0 R, bit 1 S) whose tuples had a flipped bit",
    "failed_core": "of a star or mark: the first core that has failed",
    "boundary": "of a value or star: the right boundary of its window",
    "key": "of a value: the number of its key",
    "tuple.timestamp": "of a tuple: its time",
    "faults.capacity": "of a star or mark: a key was not below the capacity",
    "faults.range": "of a star or mark: a reduction needed more bits than it has",
    "faults.key": "of a star or mark: the first key with such a fault",
    "faults.disorder": "of a star or mark: the pane of a tuple had ended",
    "faults.illegal": "of a star or mark: a word was illegal",
}
#: Words of a manifest: what names of their fields begin with, and what they are.
WORDS = {"input_word": ("INPUT", "Input word"), "result_word": ("RESULT", "Result word")}
#: Ports that carry the word of a stream of results, of a shell or of a bare accelerator.
RESULTS = re.compile(r"(m_axis\w*)_tdata|(o\w*)_payload")
#: Ports that carry the word of a stream of inputs.
INPUTS = re.compile(r"(s_axis\w*)_tdata|(i)_payload")
#: Enumerations of a manifest: what names of their values begin with, and what they are.
ENUMERATIONS = {
    "input_kinds": ("INPUT_KIND", "Kinds of input words"),
    "result_kinds": ("RESULT_KIND", "Kinds of result words"),
    "operations": ("OP", "Operations of control words"),
    "source_orders": ("SOURCE", "What OP_SOURCE says to the merge of the inputs, by its index"),
}


@dataclass(frozen=True)
class WordField:
    """A field of a word, of one bit or more.

    Parameters
    ----------
    name : str
        Name in the manifest, such as ``"key.x"``.
    offset, bits : int
        Lowest bit, and number of bits.
    signed : bool
        Whether its values are two's complement.
    """

    name: str
    offset: int
    bits: int
    signed: bool

    @property
    def constant(self):
        """Return the name as a part of the name of a constant: ``KEY_X``."""
        return re.sub(r"\W", "_", self.name).upper()

    @property
    def meaning(self):
        """Return what the field means, in a line."""
        place, _, rest = self.name.partition(".")
        if self.name in MEANINGS:
            return MEANINGS[self.name]
        if place == "key":
            return f"of a tuple: field {rest} of its key"
        if place == "tuple":
            return f"of a tuple: its field {rest}"
        if place == "window":
            return f"of a value: its reduction {rest}"
        if place == "two":
            return f"the same of the second result: {MEANINGS[rest]}"
        side, _, own = rest.partition(".")  # both.r.key.x, both.s.timestamp
        what = "its time" if own == "timestamp" else f"field {own.removeprefix('key.')} of its key"
        return f"of two tuples: that of {side.upper()}, {what}"

    @property
    def span(self):
        """Return the bits of the field in words: ``9:2``, or ``2``."""
        top = self.offset + self.bits - 1
        return f"{top}:{self.offset}" if self.bits > 1 else str(self.offset)


def what_it_is(manifest):
    """Return what to call the accelerator of a manifest: a join, or an aggregate."""
    kind = "aggregate" if "aggregate" in manifest else "stream-join"
    return f"SplitJoin {kind} accelerator"


def word_fields(word):
    """Return the fields of a word that have any bits, as :class:`WordField`.

    Parameters
    ----------
    word : dict
        ``input_word`` or ``result_word`` of a manifest.
    """
    return [WordField(name, **field) for name, field in word["fields"].items() if field["bits"]]


def words(manifest):
    """Yield name, title and description of each word of a manifest; see :func:`word_fields`."""
    for part, (name, title) in WORDS.items():
        yield name, title, manifest[part]


def enumerations(manifest):
    """Yield name, title and values of each enumeration that a manifest has.

    The values map the names of constants to numbers: ``{"OP_CLEAR": 0, …}``.
    """
    for part, (name, title) in ENUMERATIONS.items():
        if part in manifest:
            yield name, title, {f"{name}_{key}": value for key, value in manifest[part].items()}


def with_orders(manifest, orders):
    """Return a manifest to which the control words for the merge of a shell's inputs are added.

    Parameters
    ----------
    manifest : dict
    orders : dict
        :attr:`hdl.families.family.Family.orders`.
    """
    return manifest | {part: manifest.get(part, {}) | values for part, values in orders.items()}


def result_streams(ports):
    """Return the names of the streams of results among the ports of a top module: ``m_axis``."""
    return streams(ports, RESULTS)


def input_streams(ports):
    """Return the names of the streams of inputs among the ports of a top module: ``s_axis``."""
    return streams(ports, INPUTS)


def streams(ports, pattern):
    """Return the names of the streams whose words are in ports with such names."""
    found = filter(None, (pattern.fullmatch(port["name"]) for port in ports))
    return [match[1] or match[2] for match in found]


#: Access to the fields of a word in memory, where a word is a little-endian number.
ACCESS = """\
/* Value of `bits` (at most 64) bits of a word, from bit `offset` on. */
static inline uint64_t {name}_get(const uint8_t *word, unsigned offset, unsigned bits)
{{
    uint64_t value = 0;
    for (unsigned n = 0; n < bits; n++)
        value |= (uint64_t)(word[(offset + n) / 8] >> (offset + n) % 8 & 1) << n;
    return value;
}}

/* The same of a signed field. */
static inline int64_t {name}_get_signed(const uint8_t *word, unsigned offset, unsigned bits)
{{
    uint64_t value = {name}_get(word, offset, bits);
    return (int64_t)(bits < 64 && value >> (bits - 1) & 1 ? value | ~UINT64_C(0) << bits : value);
}}

/* Set a field of a word, whose other bits stay. A field above 64 bits is extended by the sign. */
static inline void {name}_put(uint8_t *word, unsigned offset, unsigned bits, int64_t value)
{{
    for (unsigned n = 0; n < bits; n++) {{
        unsigned bit = (unsigned)((uint64_t)value >> (n < 63 ? n : 63) & 1);
        uint8_t mask = (uint8_t)(1u << (offset + n) % 8);
        word[(offset + n) / 8] = (uint8_t)((word[(offset + n) / 8] & ~mask) | (bit ? mask : 0));
    }}
}}
"""


def bytes_of(word):
    """Return the bytes of a word at the pins, by its part of a manifest or a package."""
    return word.get("bytes", -(-word["bits"] // 8))


def c_place_lines(prefix, word, title):
    """Return the lines about one word: its size, and place of every field."""
    lines = [
        f"/* {title} */",
        f"#define {prefix}_BITS {word['bits']}u",
        f"#define {prefix}_BYTES {bytes_of(word)}u",
    ]
    for field in word_fields(word):
        own = f"{prefix}_{field.constant}"
        sign = "signed, " if field.signed else ""
        lines += [
            f"/* {sign}{field.meaning} */",
            f"#define {own}_OFFSET {field.offset}u",
            f"#define {own}_BITS {field.bits}u",
        ]
    return lines


def words_header(manifest, names):
    """Return the C header of the words of an accelerator, for C99 and C++.

    A field F of the input word is ``{PREFIX}INPUT_F_OFFSET`` and ``{PREFIX}INPUT_F_BITS``, one of
    the result word ``{PREFIX}RESULT_F_…``. Fields without bits are left out.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    """
    guard = f"{names.macro}WORDS_H"
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Words of the accelerator with the hash {manifest['hash']}. */",
        "/* Generated, not to be edited. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        f'#define {names.macro}WORDS_HASH "{manifest["hash"]}"',
    ]
    for name, title, word in words(manifest):
        lines += ["", *c_place_lines(f"{names.macro}{name}", word, title)]
    for _, title, values in enumerations(manifest):
        lines += ["", f"/* {title} */"]
        lines += [f"#define {names.macro}{name} {value}u" for name, value in values.items()]
    return "\n".join([*lines, "", ACCESS.format(name=names.name), f"#endif /* {guard} */", ""])


def sv_place_lines(prefix, word, title):
    """Return the lines about one word: its size, its type, and place of every field."""
    lines = [
        f"  // {title}",
        f"  localparam int unsigned {prefix}_BITS = {word['bits']};",
        f"  localparam int unsigned {prefix}_BYTES = {bytes_of(word)};",
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
        lines += ["", *sv_place_lines(name, word, title)]
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
