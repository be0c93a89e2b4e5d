# SPDX-License-Identifier: Apache-2.0
"""The input and result words of one accelerator."""

from host.manifest import JoinAggregateManifest, Manifest
from host.words.input_codec import InputCodec
from host.words.match_codec import MatchCodec
from host.words.result_codec import ResultCodec

__all__ = ["WordCodec", "codec_of"]


class WordCodec(InputCodec, ResultCodec):
    """Packs and unpacks the words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Manifest with the layout of the words.
    """

    def __init__(self, manifest: Manifest) -> None:
        InputCodec.__init__(self, manifest)
        ResultCodec.__init__(self, manifest)


def codec_of(manifest: Manifest) -> WordCodec | MatchCodec:
    """Return the codec of an accelerator that joins, or aggregates matches."""
    if isinstance(manifest, JoinAggregateManifest):
        return MatchCodec(manifest)
    return WordCodec(manifest)
