# SPDX-License-Identifier: Apache-2.0
"""Reads the manifest of any bundle."""

from pathlib import Path

from host.manifest.aggregate_manifest import AGGREGATE_FORMAT, AggregateManifest
from host.manifest.bundle_manifest import BundleManifest, read_document
from host.manifest.document import Manifest

__all__ = ["load_manifest"]


def load_manifest(path: str | Path) -> BundleManifest:
    """Return the manifest of a bundle, whatever its accelerator computes.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    """
    values, _ = read_document(path)
    is_aggregate = isinstance(values, dict) and values.get("format") == AGGREGATE_FORMAT
    kind: type[BundleManifest] = AggregateManifest if is_aggregate else Manifest
    return kind.load(path)
