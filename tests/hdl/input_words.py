# SPDX-License-Identifier: Apache-2.0
"""Input words for the tests of the accelerator's parts, and a model of what happens to them."""

from hdl.layouts import Control, InputKind, input_word, region_word

__all__ = ["control_word", "integer", "region_input", "tuple_word"]


def integer(layout, value):
    """A layout constant as an integer."""
    return layout.const(value).as_value().value


def tuple_word(side, key, timestamp=0):
    """A tuple of ``side``; ``key`` maps field names to values."""
    return {"kind": InputKind(side), "body": {"tuple": {"key": key, "timestamp": timestamp}}}


def control_word(op, index=0, value=0):
    """A control word."""
    operands = {"op": Control[op], "index": index, "value": value}
    return {"kind": InputKind.CONTROL, "body": {"control": operands}}


def region_input(parameters, word, *, close=0, star=0, disorder=0, free=0):
    """An input word as the ingress annotates it, as an integer."""
    return integer(
        region_word(parameters),
        {
            "word": integer_bits(parameters, word),
            "close": close,
            "star": star,
            "disorder": disorder,
            "free": free,
        },
    )


def integer_bits(parameters, word):
    """The word as a constant of its layout."""
    return input_word(parameters).const(word)
