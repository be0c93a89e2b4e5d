# SPDX-License-Identifier: Apache-2.0
"""Fields of input and result words, as the manifest lays them out, and input words as text.

Words are rows of ``uint64`` columns, little end first, as ``splitjoin_exchange`` takes them.
"""

import numpy as np

__all__ = ["WordLayout", "as_numbers", "listing", "parameters_of"]

FULL = (1 << 64) - 1


def as_numbers(words):
    """Return each row of ``words`` as one Python integer."""
    data, width = words.astype("<u8").tobytes(), 8 * words.shape[1]
    return [int.from_bytes(data[n : n + width], "little") for n in range(0, len(data), width)]


#: What the kinds of these parts are called among the parameters.
KINDS = {"engine": "engine", "predicate": "comparator"}


def parameters_of(manifest):
    """Return the parameters of a manifest by their names, out of the tree of their parts."""
    found = {}

    def collect(part):
        for name, value in part.items():
            if isinstance(value, dict):
                collect(value)
                if name in KINDS:
                    found[KINDS[name]] = value["kind"]
            else:
                found[name] = value

    collect(manifest["parameters"])
    return found


class WordLayout:
    """Reads and writes the fields of many words at once.

    Parameters
    ----------
    word : dict
        ``input_word`` or ``result_word`` of a manifest.

    Attributes
    ----------
    columns : int
        ``uint64`` numbers of a word.
    fields : dict
        By the name of a field, its ``offset``, ``bits`` and ``signed``.
    """

    def __init__(self, word):
        self.fields = word["fields"]
        self.bits = word["bits"]
        self.columns = -(-word["bits"] // 64)

    def blank(self, count):
        """Return ``count`` words of zeros."""
        return np.zeros((count, self.columns), np.uint64)

    def noise(self, random, count, names):
        """Return ``count`` words whose bits are random, but zero in the fields of these names."""
        free = (1 << self.bits) - 1
        for name in names:
            field = self.fields[name]
            free &= ~(((1 << field["bits"]) - 1) << field["offset"])
        bits = random.integers(0, FULL, (count, self.columns), np.uint64, endpoint=True)
        return bits & self.row(free)

    def get(self, words, name):
        """Return the bits of a field of up to 64 bits in every word, as ``uint64``."""
        field = self.fields[name]
        offset, bits = field["offset"], field["bits"]
        if bits == 0:
            return np.zeros(len(words), np.uint64)
        column, shift = divmod(offset, 64)
        value = words[:, column] >> np.uint64(shift)
        if shift + bits > 64:
            value = value | (words[:, column + 1] << np.uint64(64 - shift))
        return value & np.uint64(FULL >> (64 - bits))

    def get_ordered(self, words, name):
        """Return a field of up to 64 bits as ``uint64`` that are ordered as its values are.

        Signed values are ``2**(bits - 1)`` higher there, so differences are those of the values.
        """
        field = self.fields[name]
        value = self.get(words, name)
        return value ^ np.uint64(1 << (field["bits"] - 1)) if field["signed"] else value

    def put(self, words, name, values):
        """Write a field of up to 64 bits, whose bits have been zero, in every word."""
        field = self.fields[name]
        offset, bits = field["offset"], field["bits"]
        if bits == 0:
            return
        column, shift = divmod(offset, 64)
        value = np.asarray(values).astype(np.uint64) & np.uint64(FULL >> (64 - bits))
        words[:, column] |= value << np.uint64(shift)
        if shift + bits > 64:
            words[:, column + 1] |= value >> np.uint64(64 - shift)

    def value(self, number, name):
        """Return a field, of any width, of a word that is given as an integer."""
        field = self.fields[name]
        bits = field["bits"]
        value = (number >> field["offset"]) & ((1 << bits) - 1)
        if field["signed"] and value >> (bits - 1):
            value -= 1 << bits
        return value

    def word(self, **values):
        """Return one word, a row; the names of its fields have ``_`` in the place of dots."""
        return self.row(self.number(**values))

    def number(self, **values):
        """Return one word as an integer."""
        number = 0
        for name, value in values.items():
            field = self.fields[name.replace("_", ".")]
            number |= (value & ((1 << field["bits"]) - 1)) << field["offset"]
        return number

    def row(self, number):
        """Return the word of an integer."""
        return self.rows([number])

    def rows(self, numbers):
        """Return the words of some integers."""
        every = (1 << self.bits) - 1
        data = b"".join((one & every).to_bytes(8 * self.columns, "little") for one in numbers)
        return np.frombuffer(data, "<u8").reshape(-1, self.columns).astype(np.uint64)


def listing(manifest, words):
    """Yield a disassembly of input words, a line each."""
    layout = WordLayout(manifest["input_word"])
    kinds = {code: name for name, code in manifest["input_kinds"].items()}
    ops = {code: name for name, code in manifest["operations"].items()}
    names = [f"key.{key['name']}" for key in parameters_of(manifest)["keys"]]
    names += ["timestamp"] * bool(parameters_of(manifest)["timestamp_bits"])

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
