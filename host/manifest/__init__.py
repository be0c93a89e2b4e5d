# SPDX-License-Identifier: Apache-2.0
"""The manifest: everything that host code knows about one generated accelerator."""

from host.manifest.aggregate_manifest import AGGREGATE_FORMAT, AggregateManifest
from host.manifest.bundle_manifest import BundleManifest, read_document
from host.manifest.document import FORMAT, PORTS_FORMAT, Manifest
from host.manifest.identity import digest
from host.manifest.join_aggregate_manifest import MATCHES_FORMAT, JoinAggregateManifest
from host.manifest.loading import join_manifest, load_join_manifest, load_manifest
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
    "AGGREGATE_FORMAT",
    "FORMAT",
    "MATCHES_FORMAT",
    "PORTS_FORMAT",
    "SECOND",
    "AggregateManifest",
    "BundleManifest",
    "Chain",
    "Counter",
    "Digests",
    "ExternalMemory",
    "Index",
    "JoinAggregateManifest",
    "KeyField",
    "Manifest",
    "RoutedClock",
    "Storage",
    "Word",
    "WordField",
    "digest",
    "join_manifest",
    "load_join_manifest",
    "load_manifest",
    "read_document",
]
