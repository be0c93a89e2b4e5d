# SPDX-License-Identifier: Apache-2.0
"""The accelerator of a query: which one, what it is, and whether it can serve the query."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
import logging
from pathlib import PurePath
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from host import CountWindow, Manifest, UsageError
from host.columns.encoding import plan_streams
from host.columns.fields import FieldPlan
from host.devices.bundles import SIMULATED, SOFTWARE
from host.devices.bundles import choose_device as choose_of_host
from host.devices.software import SOFTWARE_MANIFEST
from host.errors import AcceleratorLimitError, BuildError, MissingToolError
from host.protocol.configuration import lacking, require_abilities
from host.protocol.cost_model import Circuit
from host.protocol.manifest import JoinAggregateManifest
from host.protocol.segments import require_capacity, require_pairs
from host.query.queries import Query
from spark_offload.cluster.machines import (
    Devices,
    DeviceSource,
    device_source,
    named_devices,
    survey,
)
from spark_offload.explanation import Cause, TermExplanation
from spark_offload.plan.plan import Options

__all__ = [
    "Choice",
    "QueryCheck",
    "SOFTWARE",
    "check_query",
    "choose_device",
    "explained_fields",
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
    """Where devices come from, none of them opened yet, and how they serve a query.

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
    terms : tuple of TermExplanation
        How each term of the query is evaluated there.
    causes : tuple of Cause
        Why those that were asked for do not serve; none if these are they.
    """

    source: DeviceSource
    cause: str
    manifest: Manifest
    is_simulated: bool = False
    terms: tuple[TermExplanation, ...] = ()
    causes: tuple[Cause, ...] = ()

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

    def words(self, query: Query) -> dict[str, Any]:
        """Return what the explanation of a join on it says, of batch frames or of streams."""
        cores = f"{_cores(self.manifest)} on " if self.has_limits else ""
        return {
            "device": self.uri,
            "chosen": f"{self.cause}; {self.source.supply}",
            "accelerator": self.description,
            "join": f"{query.how}: {query.how.answer}",
            "terms": self.terms,
            "causes": self.causes,
            "name": f"splitjoin({query}; {cores}{self.short_uri})",
        }

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
) -> Choice:
    """Return the devices for a query, with how each term is evaluated there, and why not others.

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

    def tried(device: Devices) -> Choice:
        choice = choose_device(
            device, query, session, needs=needs, tuples=tuples, build=options.build
        )
        return replace(choice, terms=(check or check_query)(query, choice, *schemas))

    try:
        return tried(options.device)
    except _LIMITS as error:
        if options.strict:
            raise
        try:
            choice = tried(SOFTWARE)
        except _LIMITS:  # the error of the devices asked for is the one that helps
            raise error from None
        _LOG.warning("The software engine joins in place of the accelerator: %s", error)
        why = "the accelerator cannot serve; strict=True raises this"
        return replace(choice, cause=why, causes=(Cause.of(error),))


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
    explanations = list(explained_fields(plan.fields))
    explanations += [
        TermExplanation(str(rest), "no key field", "found out from the rows of the pairs")
        for rest in (
            *(term.term for term in plan.unassigned),
            *([] if plan.condition is None else [plan.condition.text]),
        )
    ]
    return tuple(explanations)


def explained_fields(fields: Iterable[FieldPlan], note: str = "") -> Iterator[TermExplanation]:
    """Yield how the terms of each key field are evaluated; by default, the field says how."""
    for field in fields:
        terms = ", ".join(str(term.term) for term in field.terms)
        yield TermExplanation(terms, f"key field {field.name!r}", note or field.note)


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
