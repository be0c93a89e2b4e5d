# SPDX-License-Identifier: Apache-2.0
"""Input words as text, for programs that have become small."""

from .words import WordLayout, as_numbers

__all__ = ["listing"]


def listing(manifest, words):
    """Yield a disassembly of input words, a line each."""
    layout = WordLayout(manifest["input_word"])
    kinds = {code: name for name, code in manifest["input_kinds"].items()}
    ops = {code: name for name, code in manifest["operations"].items()}
    names = [f"key.{key['name']}" for key in manifest["parameters"]["keys"]]
    names += ["timestamp"] * bool(manifest["parameters"]["timestamp_bits"])

    def tuple_text(number, side, prefix=""):
        values = [f"{n.removeprefix('key.')}={layout.value(number, prefix + n)}" for n in names]
        return " ".join([side, *values])

    for number in as_numbers(words):
        kind = kinds.get(layout.value(number, "kind"))
        if kind in ("R", "S"):
            yield tuple_text(number, kind)
        elif kind == "BOTH":
            both = [tuple_text(number, side, f"both.{side.lower()}.") for side in "RS"]
            yield " | ".join(both[::-1] if layout.value(number, "first") else both)
        elif kind == "CONTROL":
            op = layout.value(number, "control.op")
            index, value = (layout.value(number, f"control.{n}") for n in ("index", "value"))
            yield f"{ops.get(op, f'operation {op}')} {index} {value}"
        else:
            yield "(a kind that is none)"
