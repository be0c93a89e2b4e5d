# SPDX-License-Identifier: Apache-2.0
"""Who keeps the windows of an aggregation: Spark, the host, or an accelerator that suits it."""

import pyarrow as pa

from host.devices import device_kind
from host.errors import DeviceUriError
from host.operators.device_aggregate import require_suitable
from host.protocol.manifest import AggregateManifest
from host.query.queries import AggregateQuery

__all__ = ["HOST", "OWN", "device_text"]

HOST = "none: panes on the host"
"""Nobody but the host."""

OWN = "Spark's own groupBy(window(...))"
"""Spark itself."""


def device_text(
    device: str | None, schema: pa.Schema, query: AggregateQuery, *, goes_on: bool = False
) -> str:
    """Return what keeps the windows of a query, in words.

    Parameters
    ----------
    device : str or None
        Address of the accelerator; None for the host.
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        What the accelerator would compute.
    goes_on : bool
        Whether the host goes on from the first rows for which the accelerator has no room.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs.
    DeviceUriError, ManifestError
        If there is no such accelerator.
    """
    if device is None:
        return HOST
    _, _, place = device.partition(":")
    if device_kind(device) != "sim" or not place:
        raise DeviceUriError(device, "cannot aggregate, as only 'sim:BUNDLE' can")
    manifest = AggregateManifest.load(place)
    require_suitable(schema, query, manifest)
    return (
        f"{device}: {manifest.cores} core{'s' if manifest.cores > 1 else ''} with room for "
        f"{manifest.keys:,} keys and windows of {manifest.panes} panes; each task makes one of its "
        f"own; {manifest.hash[:12]}{'; for what it has no room, the host goes on' * goes_on}"
    )
