# SPDX-License-Identifier: Apache-2.0
"""The input and result words of one accelerator."""

from host.manifest import Manifest
from host.words.input_codec import InputCodec
from host.words.result_codec import ResultCodec

__all__ = ["WordCodec"]


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
