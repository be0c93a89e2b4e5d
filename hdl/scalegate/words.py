# SPDX-License-Identifier: Apache-2.0
"""Words of the sources of a ScaleGate, and words inside and behind it."""

from amaranth import *
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

__all__ = ["GateKind", "gate_word", "source_word"]


class GateKind(enum.Enum, shape=2):
    """Kind of a word of a source."""

    #: A tuple. Its time is an implicit watermark.
    TUPLE = 0
    #: An explicit watermark: the source sends no tuple below this time any more.
    WATERMARK = 1
    #: The source leaves. It holds nobody back until its next word, which adds it again.
    LEAVE = 2
    #: End of an epoch. The barriers of all sources become one, behind every tuple before them. The
    #: times of a source start again at zero behind it.
    BARRIER = 3


def source_word(time_bits, shape):
    """Return the layout of a word as a source sends it.

    Parameters
    ----------
    time_bits : int
        Width of ``time``.
    shape : shape-like
        Shape of ``body``, which passes unchanged. Only a tuple and a barrier have one.
    """
    return data.StructLayout({"kind": GateKind, "time": unsigned(time_bits), "body": shape})


def gate_word(time_bits, shape, *, sources):
    """Return the layout of a word inside and behind a ScaleGate of so many ``sources``.

    ``late``, of a tuple: it came too late. Its ``time`` is then not its own, but that of its place.
    Of a WATERMARK in front of a merge: it says nothing new. ``time``, of a BARRIER: zero.
    ``source``, of a tuple: number of its source.
    """
    return data.StructLayout(
        {
            "kind": GateKind,
            "late": 1,
            "source": unsigned(ceil_log2(sources)),
            "time": unsigned(time_bits),
            "body": shape,
        }
    )
