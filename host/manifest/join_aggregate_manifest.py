# SPDX-License-Identifier: Apache-2.0
"""The manifest of a join aggregate, an accelerator that reduces the matches of each left row."""

from dataclasses import dataclass
from typing import ClassVar

from host.manifest.document import Manifest

__all__ = ["MATCHES_FORMAT", "JoinAggregateManifest"]

#: Format number of the manifests of join aggregates that this version reads.
MATCHES_FORMAT = 7


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinAggregateManifest(Manifest):
    """Description of one join aggregate; read it with :meth:`load`.

    Tuples of S are stored and have a ``value`` beside their key; tuples of R only probe. In the
    result word, ``value.count``, ``value.total``, ``value.least`` and ``value.most`` are what the
    matches of a tuple of R are reduced to, and ``value.probe`` is its number since the last star.
    """

    formats: ClassVar[tuple[int, ...]] = (MATCHES_FORMAT,)

    @property
    def probe_bits(self) -> int:
        """Width of a result's probe index in bits."""
        return self.result_word["value.probe"].bits

    @property
    def value_bits(self) -> int:
        """Width of the signed value beside a stored key."""
        return self.input_word["value"].bits
