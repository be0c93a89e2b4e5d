# SPDX-License-Identifier: Apache-2.0
"""The words of one accelerator, in and out."""

from host.manifest import Manifest
from host.words.input_codec import InputCodec
from host.words.result_codec import ResultCodec

__all__ = ["WordCodec"]


class WordCodec(InputCodec, ResultCodec):
    """Packs and unpacks the words of one accelerator.

    Parameters
    ----------
    manifest : Manifest
        Where the fields are.
    """

    def __init__(self, manifest: Manifest) -> None:
        InputCodec.__init__(self, manifest)
        ResultCodec.__init__(self, manifest)
