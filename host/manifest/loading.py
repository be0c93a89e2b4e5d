# SPDX-License-Identifier: Apache-2.0
"""Reads the manifest of any bundle."""

from pathlib import Path
from typing import Any

from host.manifest.aggregate_manifest import AGGREGATE_FORMAT, AggregateManifest
from host.manifest.bundle_manifest import BundleManifest, read_document
from host.manifest.document import Manifest
from host.manifest.join_aggregate_manifest import MATCHES_FORMAT, JoinAggregateManifest

__all__ = ["join_manifest", "load_join_manifest", "load_manifest"]

#: Kinds of manifests by their formats, but for those of joins.
_KINDS: dict[Any, type[BundleManifest]] = {
    AGGREGATE_FORMAT: AggregateManifest,
    MATCHES_FORMAT: JoinAggregateManifest,
}


def load_manifest(path: str | Path) -> BundleManifest:
    """Return the manifest of a bundle, whatever its accelerator computes.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    """
    values, _ = read_document(path)
    format_ = values.get("format") if isinstance(values, dict) else None
    return _KINDS.get(format_, Manifest).load(path)


def load_join_manifest(path: str | Path) -> Manifest:
    """Return the manifest of a bundle that joins: one of pairs, or of aggregates of matches.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    """
    values, _ = read_document(path)
    return _kind_of_join(values).load(path)


def join_manifest(values: Any, *, name: str) -> Manifest:
    """Return the manifest of an accelerator that joins, from its document.

    Parameters
    ----------
    values : JSON value
        The document.
    name : str
        What to call it in errors.

    Raises
    ------
    ManifestError
        If the accelerator cannot be used.
    """
    return _kind_of_join(values).from_dict(values, name=name)


def _kind_of_join(values: Any) -> type[Manifest]:
    is_aggregate = isinstance(values, dict) and values.get("format") == MATCHES_FORMAT
    return JoinAggregateManifest if is_aggregate else Manifest
