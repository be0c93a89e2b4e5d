# SPDX-License-Identifier: Apache-2.0
"""The accelerator of a join: which one, what it is, and whether it can serve the query."""

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from host import CountWindow, Manifest
from host.encode import plan_streams
from host.engine_choice import suitable_engine
from host.errors import CapacityError
from host.query import JoinQuery
from spark_offload.device_survey import survey
from spark_offload.devices import Devices, DeviceSource, device_source
from spark_offload.explanation import TermExplanation

__all__ = ["Choice", "check_query", "choose_device"]


@dataclass(frozen=True)
class Choice:
    """Where devices come from, none of them opened yet.

    Parameters
    ----------
    source : DeviceSource
        The devices.
    reason : str
        Why these, and how a task gets one.
    manifest : Manifest
        Their description.
    """

    source: DeviceSource
    reason: str
    manifest: Manifest

    @property
    def uri(self) -> str:
        """The devices as the user knows them."""
        return self.source.text

    @property
    def has_limits(self) -> bool:
        """Whether it holds a fixed number of tuples, as everything but ``software:`` does."""
        return self.uri != "software:"

    @property
    def description(self) -> str:
        """What the manifest says, on a line."""
        if not self.has_limits:
            return "none: the reference join, in software"
        manifest = self.manifest
        keys = ", ".join(f"{key.name} {key.bits} bits" for key in manifest.keys)
        speed = (
            "an index, one entry a cycle and region"
            if manifest.engine == "index"
            else f"{manifest.storage.lanes} keys x {manifest.probes} probes a cycle and region"
        )
        return (
            f"{manifest.storage.cores} cores x {manifest.storage.sub_window:,} tuples = "
            f"{manifest.capacity:,} tuples a side; {speed}; key fields {keys}; "
            f"timestamps of {manifest.timestamp_bits} bits; {manifest.hash[:12]}"
        )


def choose_device(devices: Devices, query: JoinQuery, session: SparkSession) -> Choice:
    """Return the devices asked for, or the default one, which is built if it is not there yet.

    The default has the engine that suits the query.

    Raises
    ------
    JoinError
        If there is no such device, or its bundle cannot be used or built.
    """
    if devices is None:
        from host.bundles import default_bundle

        suitable = suitable_engine(query)
        devices, reason = f"sim:{default_bundle(suitable.engine)}", suitable.reason
    else:
        reason = "as asked for"
    source = device_source(devices, session)
    # Looking at it now finds out early what every task would run into.
    manifest = survey(source, session)
    planned = replace(source, manifest_hash=manifest.hash)
    return Choice(planned, f"{reason}; {source.supply}", manifest)


def check_query(
    query: JoinQuery, choice: Choice, left: pa.Schema, right: pa.Schema
) -> tuple[TermExplanation, ...]:
    """Let the host plan the encoding, which meets every error but those of values.

    Returns
    -------
    tuple of TermExplanation
        How each term is evaluated.

    Raises
    ------
    UsageError
        If the accelerator cannot serve the query, or columns cannot be compared.
    """
    manifest, window = choice.manifest, query.window
    if isinstance(window, CountWindow) and choice.has_limits and window.size > manifest.capacity:
        raise CapacityError(window.size, manifest.capacity, cores=manifest.storage.cores)
    plan = plan_streams(left, right, query, choice.manifest)
    explanations = [
        TermExplanation(
            term=", ".join(str(term.term) for term in field.terms),
            field=f"key field {field.name!r}",
            note=field.note,
        )
        for field in plan.fields
    ]
    return tuple(explanations)
