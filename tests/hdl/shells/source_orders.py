# SPDX-License-Identifier: Apache-2.0
"""Control words for the merge of two inputs."""

from hdl.words.inputs import SOURCE_OPERATION, input_word
from tests.hdl.input_words import control_word, integer

__all__ = ["order"]


def order(parameters, which, value=0):
    """Return an order to the merge, such as ``SourceOrder.LEAVE.value``, as an integer."""
    layout = input_word(parameters)
    word = integer(layout, control_word("CLEAR", which, value))  # its operation is zero
    control = layout["body"].shape["control"]
    assert control.offset == 0
    return word | SOURCE_OPERATION << layout["body"].offset + control.shape["op"].offset
