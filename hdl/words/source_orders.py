# SPDX-License-Identifier: Apache-2.0
"""Control words of a join that the merge of a shell's inputs takes, and no accelerator."""

from amaranth.lib import enum

__all__ = ["SOURCE_OPERATION", "SourceOrder"]

#: Operation of a control word that is meant for the merge of the inputs, not for the accelerator,
#: which has no operation of this number.
SOURCE_OPERATION = 15


class SourceOrder(enum.Enum, shape=2):
    """What such a control word says, by its index."""

    #: This input sends no tuple below ``value`` any more.
    WATERMARK = 0
    #: This input leaves, and comes back with its next word.
    LEAVE = 1
    #: Another input is excluded if it stalls: of two inputs the other one, of more inputs the one
    #: with the number ``value``.
    EXCLUDE = 2
