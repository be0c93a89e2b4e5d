# SPDX-License-Identifier: Apache-2.0
"""Input and result words as arrays of 64-bit numbers, one word per row, lowest number first."""

from host.words.aggregate_codec import AggregateCodec, WindowResults
from host.words.bit_fields import pack_field, unpack_field
from host.words.codec import WordCodec, codec_of
from host.words.match_codec import REDUCTIONS, MatchCodec, MatchResults
from host.words.port_merge import by_side, merge_ports
from host.words.result_codec import ResultWords
from host.words.tuple_writer import Blocks

__all__ = [
    "REDUCTIONS",
    "AggregateCodec",
    "Blocks",
    "MatchCodec",
    "MatchResults",
    "ResultWords",
    "WindowResults",
    "WordCodec",
    "by_side",
    "codec_of",
    "merge_ports",
    "pack_field",
    "unpack_field",
]
