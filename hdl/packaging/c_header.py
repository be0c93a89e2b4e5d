# SPDX-License-Identifier: Apache-2.0
"""The C header of the words: places of fields, kinds, operations, and access to a field."""

from .word_fields import enumerations, word_fields, words

__all__ = ["words_header"]

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


def place_lines(prefix, word, title):
    """Return the lines about one word: its size, and place of every field."""
    lines = [
        f"/* {title} */",
        f"#define {prefix}_BITS {word['bits']}u",
        f"#define {prefix}_BYTES {-(-word['bits'] // 8)}u",
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
        lines += ["", *place_lines(f"{names.macro}{name}", word, title)]
    for _, title, values in enumerations(manifest):
        lines += ["", f"/* {title} */"]
        lines += [f"#define {names.macro}{name} {value}u" for name, value in values.items()]
    return "\n".join([*lines, "", ACCESS.format(name=names.name), f"#endif /* {guard} */", ""])
