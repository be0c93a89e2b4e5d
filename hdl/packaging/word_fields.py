# SPDX-License-Identifier: Apache-2.0
"""Fields, kinds and operations of the words, as a manifest lists them, with names and meanings."""

from dataclasses import dataclass
import re

__all__ = [
    "WordField",
    "enumerations",
    "input_streams",
    "result_streams",
    "what_it_is",
    "with_orders",
    "word_fields",
    "words",
]

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
