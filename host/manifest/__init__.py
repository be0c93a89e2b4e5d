# SPDX-License-Identifier: Apache-2.0
"""The manifest: everything that host code knows about one generated accelerator."""

from host.manifest.document import FORMAT, PORTS_FORMAT, Manifest
from host.manifest.identity import digest
from host.manifest.parts import (
    Chain,
    Counter,
    Digests,
    ExternalMemory,
    Index,
    RoutedClock,
    Storage,
)
from host.manifest.word_layout import SECOND, KeyField, Word, WordField

__all__ = [
    "FORMAT",
    "PORTS_FORMAT",
    "SECOND",
    "Chain",
    "Counter",
    "Digests",
    "ExternalMemory",
    "Index",
    "KeyField",
    "Manifest",
    "RoutedClock",
    "Storage",
    "Word",
    "WordField",
    "digest",
]
