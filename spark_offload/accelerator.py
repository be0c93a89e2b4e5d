# SPDX-License-Identifier: Apache-2.0
"""The accelerator of a join: which one, what it is, and whether it can serve the query."""

from dataclasses import dataclass
from pathlib import PurePath

import pyarrow as pa

from host import CountWindow, Manifest, UsageError, open_device
from host.default_device import default_device
from host.encode import plan_streams
from host.errors import CapacityError
from host.query import JoinQuery
from spark_offload.explanation import TermExplanation

__all__ = ["Choice", "check_query", "choose_device"]


@dataclass(frozen=True)
class Choice:
    """A device, not yet opened.

    Parameters
    ----------
    uri : str
        Its address.
    reason : str
        Why this one.
    manifest : Manifest
        Its description.
    """

    uri: str
    reason: str
    manifest: Manifest

    @property
    def has_limits(self) -> bool:
        """Whether it holds a fixed number of tuples, as everything but ``software:`` does."""
        return self.uri != "software:"

    def name(self, query: JoinQuery) -> str:
        """Return what a join on it is called in Spark's plan."""
        cores = f"{_cores(self.manifest)} on " if self.has_limits else ""
        return f"splitjoin({query}; {cores}{self.short_uri})"

    @property
    def short_uri(self) -> str:
        """Its address, of a path the last part only."""
        kind, colon, place = self.uri.partition(":")
        return f"{kind}{colon}{PurePath(place).name}"

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
            f"{_cores(manifest)} x {manifest.storage.sub_window:,} tuples = "
            f"{manifest.capacity:,} tuples a side; {speed}; key fields {keys}; "
            f"timestamps of {manifest.timestamp_bits} bits; {manifest.hash[:12]}"
        )


def choose_device(
    uri: str | None, query: JoinQuery, *, tuples: int = 0, build: bool = False
) -> Choice:
    """Return the device at ``uri``, or the default one, which is built if it is not there yet.

    The default has the engine that suits the query; see :func:`host.default_device.default_device`
    for ``tuples`` and ``build``.

    Raises
    ------
    JoinError
        If there is no such device, or its bundle cannot be used or built.
    """
    if uri is None:
        default = default_device(query, tuples=tuples, build=build)
        uri, reason = default.uri, default.reason
    elif isinstance(uri, str):
        reason = "as asked for"
    else:
        raise UsageError(f"device must be a text such as 'sim:BUNDLE', not {uri!r}.")
    # Opening it here finds out early what every task would run into.
    with open_device(uri) as device:
        return Choice(uri, reason, device.manifest)


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
        raise CapacityError(
            window.size,
            manifest.capacity,
            cores=manifest.storage.cores,
            engine=manifest.engine,
        )
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


def _cores(manifest: Manifest) -> str:
    cores = manifest.storage.cores
    return f"{cores} core{'' if cores == 1 else 's'}"
