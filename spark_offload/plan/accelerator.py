# SPDX-License-Identifier: Apache-2.0
"""The accelerator of a query: which one, what it is, and whether it can serve the query."""

from collections.abc import Callable
from dataclasses import dataclass, replace
import logging
from pathlib import PurePath
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from host import CountWindow, Manifest, UsageError
from host.columns.encoding import plan_streams
from host.devices import device_kind
from host.devices.bundles import SIMULATED, SOFTWARE
from host.devices.bundles import choose_device as choose_of_host
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import (
    AcceleratorLimitError,
    BuildError,
    MissingToolError,
    unusable_uri,
)
from host.operators.aggregate import WindowAggregation
from host.protocol.configuration import lacking, require_abilities
from host.protocol.cost_model import Circuit
from host.protocol.manifest import AggregateManifest, JoinAggregateManifest
from host.protocol.segments import require_capacity, require_pairs
from host.query.queries import AggregateQuery, Query
from spark_offload.cluster.devices import (
    Devices,
    DeviceSource,
    device_source,
    named_devices,
    survey,
)
from spark_offload.explanation.explanations import Cause, TermExplanation
from spark_offload.plan.options import Options

__all__ = [
    "Choice",
    "HOST",
    "OWN",
    "QueryCheck",
    "SOFTWARE",
    "check_query",
    "choose_device",
    "device_text",
    "require_window",
    "serving",
    "software_serves",
]

_LOG = logging.getLogger("spark_offload")

_LIMITS = (AcceleratorLimitError, BuildError, MissingToolError)
"""What makes the software engine join in place of an accelerator; mistakes stay mistakes."""

# The accelerator of a join: which one, what it is, and whether it can serve the query.


@dataclass(frozen=True)
class Choice:
    """Where devices come from, none of them opened yet.

    Parameters
    ----------
    source : DeviceSource
        The devices.
    cause : str
        Why these.
    manifest : Manifest
        Their description.
    is_simulated : bool
        Whether the kit has chosen the bundle, as for ``"sim:"``, and may build a larger one.
    """

    source: DeviceSource
    cause: str
    manifest: Manifest
    is_simulated: bool = False

    @property
    def reason(self) -> str:
        """Why these devices, and how a task gets one."""
        return f"{self.cause}; {self.source.supply}"

    @property
    def uri(self) -> str:
        """The devices as the user knows them."""
        return self.source.text

    @property
    def has_limits(self) -> bool:
        """Whether it holds a fixed number of tuples, as everything but ``software:`` does."""
        return self.uri != SOFTWARE

    @property
    def reduces(self) -> bool:
        """Whether it sends what matches are reduced to, and no pairs."""
        return isinstance(self.manifest, JoinAggregateManifest)

    @property
    def is_estimated(self) -> bool:
        """Whether there is a model of its cycles: it counts them."""
        return not self.uri.startswith(SOFTWARE)

    def name(self, query: Query) -> str:
        """Return what a join on it is called in Spark's plan."""
        cores = f"{_cores(self.manifest)} on " if self.has_limits else ""
        return f"splitjoin({query}; {cores}{self.short_uri})"

    @property
    def short_uri(self) -> str:
        """The addresses, of paths the last part only."""
        return ", ".join(
            f"{kind}{colon}{PurePath(place).name}"
            for kind, colon, place in (uri.partition(":") for uri in self.uri.split(", "))
        )

    @property
    def description(self) -> str:
        """What the manifest says, on a line."""
        if not self.has_limits:
            return "none: the software engine"
        manifest = self.manifest
        keys = ", ".join(f"{key.name} {key.bits} bits" for key in manifest.keys)
        speed = f"{Circuit.of(manifest).speed} a cycle and region"
        if self.reduces:
            speed += ", one word for each left row"
        return (
            f"{_cores(manifest)} x {manifest.storage.sub_window:,} tuples = "
            f"{manifest.capacity:,} tuples a side; {speed}; key fields {keys}; "
            f"timestamps of {manifest.timestamp_bits} bits; {manifest.hash[:12]}"
            + "".join(f"; {lack}" for lack in lacking(manifest))
        )


QueryCheck: TypeAlias = Callable[[Query, Choice, pa.Schema, pa.Schema], tuple[TermExplanation, ...]]
"""What :func:`check_query` does, or the same for something else than pairs."""


def choose_device(
    devices: Devices,
    query: Query,
    session: SparkSession,
    *,
    needs: str | None = None,
    tuples: int = 0,
    build: bool = False,
) -> Choice:
    """Return the devices asked for, or what is best here.

    Where none is asked for, these are, in this order: what the session's ``spark.splitjoin.device``
    names, what ``SPLITJOIN_DEVICE`` names where the driver runs, Spark's resource ``splitjoin`` if
    tasks get one, and the software engine. See :func:`host.devices.bundles.choose_device` for
    ``"sim:"``, ``needs``, ``tuples`` and ``build``.

    Raises
    ------
    JoinError
        If there is no such device, or its bundle cannot be used or built.
    """
    cause = "as asked for"
    if devices is None:
        devices, cause = named_devices(session)
    is_simulated = False
    if devices is None or isinstance(devices, str):
        found = choose_of_host(devices, query, cause=cause, needs=needs, tuples=tuples, build=build)
        # Of any other address, what was chosen is what was named.
        is_simulated = devices in (None, SIMULATED) and found.uri.startswith(SIMULATED)
        devices, cause = found.uri, found.reason
    source = device_source(devices, session)
    # Looking at it now finds out early what every task would run into.
    manifest = survey(source, session)
    planned = replace(source, manifest_hash=manifest.hash)
    return Choice(planned, cause, manifest, is_simulated)


def serving(
    query: Query,
    options: Options,
    session: SparkSession,
    schemas: tuple[pa.Schema, pa.Schema],
    check: QueryCheck | None = None,
    *,
    tuples: int = 0,
) -> tuple[Choice, tuple[TermExplanation, ...], tuple[Cause, ...]]:
    """Return the devices for a query, how each term is evaluated there, and why not others.

    Where the devices asked for cannot serve, the software engine does, and the log says so.

    Parameters
    ----------
    query : Query
        What is joined.
    options : Options
        The devices asked for; strict: it is an error that these cannot serve.
    session : SparkSession
        Where.
    schemas : (Schema, Schema)
        Columns of the inputs.
    check : callable, optional
        Whether devices serve; by default :func:`check_query`.
    tuples : int
        Rows of a side in the largest window, if they have been counted.
    """
    needs = "a trace of cycles" if options.trace else None

    def tried(device: Devices) -> tuple[Choice, tuple[TermExplanation, ...]]:
        choice = choose_device(
            device, query, session, needs=needs, tuples=tuples, build=options.build
        )
        return choice, (check or check_query)(query, choice, *schemas)

    try:
        return (*tried(options.device), ())
    except _LIMITS as error:
        if options.strict:
            raise
        try:
            choice, terms = tried(SOFTWARE)
        except _LIMITS:  # the error of the devices asked for is the one that helps
            raise error from None
        _LOG.warning("The software engine joins in place of the accelerator: %s", error)
        why = "the accelerator cannot serve; strict=True raises this"
        return replace(choice, cause=why), terms, (Cause.of(error),)


def check_query(
    query: Query, choice: Choice, left: pa.Schema, right: pa.Schema
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
    require_pairs(choice.manifest)
    require_abilities(query, choice.manifest, choice.uri if choice.has_limits else None)
    require_window(query, choice)
    plan = plan_streams(left, right, query, choice.manifest)
    explanations = [
        TermExplanation(
            term=", ".join(str(term.term) for term in field.terms),
            field=f"key field {field.name!r}",
            note=field.note,
        )
        for field in plan.fields
    ]
    explanations += [
        TermExplanation(str(rest), "no key field", "found out from the rows of the pairs")
        for rest in (
            *(term.term for term in plan.unassigned),
            *([] if plan.condition is None else [plan.condition.text]),
        )
    ]
    return tuple(explanations)


def require_window(query: Query, choice: Choice) -> None:
    """Raise unless the accelerator holds the window of a query, if that counts rows.

    Raises
    ------
    host.errors.CapacityError
        If not.
    """
    if isinstance(query.window, CountWindow) and choice.has_limits:
        require_capacity(query.window, choice.manifest)


def software_serves(query: Query, choice: Choice, left: pa.Schema, right: pa.Schema) -> bool:
    """Whether the software engine gives the answer that ``choice`` gives."""
    if choice.manifest.predicate is not None and choice.manifest.where is None:
        return False
    try:
        plan_streams(left, right, query, Manifest.load(SOFTWARE_MANIFEST))
    except UsageError:
        return False
    return True


def _cores(manifest: Manifest) -> str:
    cores = manifest.storage.cores
    return f"{cores} core{'' if cores == 1 else 's'}"


# Who keeps the windows of an aggregation: Spark, the host, or an accelerator that suits it.

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
    UsageError, ManifestError
        If there is no such accelerator.
    """
    if device is None:
        return HOST
    _, _, place = device.partition(":")
    if device_kind(device) != "sim" or not place:
        raise unusable_uri(device, "cannot aggregate, as only 'sim:BUNDLE' can")
    manifest = AggregateManifest.load(place)
    WindowAggregation(schema, query).lanes(manifest)  # raises if it does not suit
    return (
        f"{device}: {manifest.cores} core{'s' if manifest.cores > 1 else ''} with room for "
        f"{manifest.keys:,} keys and windows of {manifest.panes} panes; each task makes one of its "
        f"own; {manifest.hash[:12]}{'; for what it has no room, the host goes on' * goes_on}"
    )
