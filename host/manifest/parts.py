# SPDX-License-Identifier: Apache-2.0
"""Parts of a manifest: storage, engine, chain, counters and routed clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from host.manifest.word_layout import Word

__all__ = ["Chain", "Counter", "Digests", "ExternalMemory", "Index", "RoutedClock", "Storage"]


@dataclass(frozen=True)
class Storage:
    """The storage rule of the cores, and the encoding of a core in a result."""

    cores: int
    sub_window: int
    lanes: int
    ring_rows: int
    slack: int
    gather_arity: int
    gather_digit_bits: int
    gather_levels: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Storage":
        """Read this part from its JSON document."""
        gather = values["gather"]
        return cls(
            cores=values["cores"],
            sub_window=values["sub_window"],
            lanes=values["lanes"],
            ring_rows=values["ring_rows"],
            slack=values["slack"],
            gather_arity=gather["arity"],
            gather_digit_bits=gather["digit_bits"],
            gather_levels=gather["levels"],
        )

    @property
    def capacity(self) -> int:
        """Number of tuples of one side that all cores together hold."""
        return self.cores * self.sub_window


@dataclass(frozen=True)
class Index:
    """The buckets of an index engine: bits of their numbers, and layout of COORDINATE values."""

    bucket_bits: int
    coordinate: Word

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Index":
        """Read this part from its JSON document."""
        return cls(values["bucket_bits"], Word.from_dict(values["coordinate"]))


@dataclass(frozen=True)
class ExternalMemory:
    """The memories that windows are in: one behind each port, which regions have in their order.

    Each has so many ``bytes``, is read in beats of ``beat_bytes``, of which ``key_bytes`` are keys,
    and hides so many cycles of ``latency``.
    """

    ports: tuple[str, ...]
    bytes: int
    beat_bytes: int
    key_bytes: float
    burst_beats: int
    latency: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ExternalMemory":
        """Read this part from its JSON document."""
        return cls(**{**values, "ports": tuple(values["ports"])})


@dataclass(frozen=True)
class Digests:
    """The digests of a band: bits of each of their parts, and layout of CELL values."""

    parts: tuple[int, ...]
    cell: Word

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Digests":
        """Read this part from its JSON document."""
        return cls(tuple(values["parts"]), Word.from_dict(values["cell"]))


@dataclass(frozen=True)
class Chain:
    """What an accelerator whose cores are a chain answers differently from SplitJoin.

    Parameters
    ----------
    architecture : str
        ``"handshake"`` or ``"low-latency-handshake"``.
    ordinal_bits : int
        Width of the numbers that its pairs name tuples by.
    order : str
        ``"none"``: pairs come in no order and without stars, up to the mark.
    emptied_by : tuple of str
        Operations that empty both windows, after all pairs in them have been found.
    """

    architecture: str
    ordinal_bits: int
    order: str
    emptied_by: tuple[str, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Chain":
        """Read this part from its JSON document."""
        return cls(**{**values, "emptied_by": tuple(values["emptied_by"])})


@dataclass(frozen=True)
class Counter:
    """A performance counter."""

    name: str
    address: int
    bits: int
    description: str = ""


@dataclass(frozen=True)
class RoutedClock:
    """The clock that the accelerator, or its twin, has on a device after place and route.

    Parameters
    ----------
    preset : str
        The preset that was routed.
    twin : bool
        Whether the accelerator is not that preset itself but its stand-in for simulation.
    capacity : int
        Number of tuples of one side that the preset holds.
    device, speed : str, int
        The device and its speed grade.
    mhz : float
        Clock of the slowest seed in MHz.
    report : str
        Path of the routing report in the kit's checkout.
    earlier_design : str or None
        The earlier design that the report describes; None if the report describes the design of
        the kit that generated the bundle.
    """

    preset: str
    twin: bool
    capacity: int
    device: str
    speed: int
    mhz: float
    report: str
    earlier_design: str | None = None
