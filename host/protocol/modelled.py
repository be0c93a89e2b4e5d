# SPDX-License-Identifier: Apache-2.0
"""Devices as the cost model sees them: accelerator, clock, and the link that rows come by."""

from dataclasses import dataclass
from importlib.resources import files
import json
import math
from typing import Any

from host.protocol.cost_model import Circuit, Workload, cycles_per_tuple

__all__ = ["Estimate", "Link", "ModelledDevice", "modelled_devices"]


@dataclass(frozen=True)
class Link:
    """The way between a host and a device, the same in both directions at once.

    Parameters
    ----------
    name : str
        What it is.
    octets_per_s : float
        Octets of words that pass in a second.
    round_trip_us : float
        Microseconds from the last word of a batch to its last result, besides the cycles.
    known : str
        Where both figures are from.
    """

    name: str
    octets_per_s: float
    round_trip_us: float
    known: str


@dataclass(frozen=True)
class Estimate:
    """Seconds of one join by its three parts, which work at the same time on other rows.

    Parameters
    ----------
    cycles : float
        Clock cycles for each tuple of either side.
    device, link, host : float
        Seconds of the cycles, of the words on the link, and of the host for all rows.
    start : float
        Seconds that a join takes besides, however few rows it has.
    """

    cycles: float
    device: float
    link: float
    host: float
    start: float

    @property
    def seconds(self) -> float:
        """Seconds of the whole join: those of the slowest part, and the start."""
        return max(self.device, self.link, self.host) + self.start

    @property
    def slowest(self) -> str:
        """The part that all others wait for."""
        parts = {"device": self.device, "link": self.link, "host": self.host}
        return max(parts, key=lambda name: parts[name])

    def pays_from(self, rows: int, seconds: float) -> float:
        """Return from how many rows on it is quicker than another way; infinite if it never is.

        Parameters
        ----------
        rows : int
            Rows of the join that was estimated.
        seconds : float
            What they take the other way, which needs no start.
        """
        saved = (seconds - (self.seconds - self.start)) / rows
        return math.inf if saved <= 0 else self.start / saved


@dataclass(frozen=True)
class ModelledDevice:
    """An accelerator on a device, as far as the cost model needs to know it.

    Parameters
    ----------
    name : str
        What tables call it.
    preset : str
        That of ``python -m hdl`` whose circuit it has.
    clock : str
        Where its clock is from: a routing report, or an assumption.
    mhz : float
        The clock in MHz.
    capacity : int
        Tuples that it holds a side.
    input_octets, result_octets : int
        Octets of a word on the link, which holds as many tuples as the circuit says.
    link : Link
        How words come and go.
    circuit : Circuit
        Its terms in the cost model.
    """

    name: str
    preset: str
    clock: str
    mhz: float
    capacity: int
    input_octets: int
    result_octets: int
    link: Link
    circuit: Circuit

    def estimate(
        self, rows: int, window: tuple[float, float], results: int, *, share: float = 0.5,
        host: float = 0.0,
    ) -> Estimate:  # fmt: skip
        """Return what a join takes at the least.

        Parameters
        ----------
        rows, results : int
            Rows of both inputs together, and pairs.
        window : (float, float)
            Rows of each side in the window on average.
        share : float
            Which part of the rows is of the left side.
        host : float
            Seconds that the host takes for its part of all rows.
        """
        matches = results / rows if rows else 0.0
        load = Workload(
            windows=window, share=share, period=self.circuit.probes, matches=matches,
            entries=matches,
        )  # fmt: skip
        cycles = cycles_per_tuple(self.circuit, load)
        octets = rows * self.input_octets, results * self.result_octets
        return Estimate(
            cycles=cycles,
            device=rows * cycles / (1e6 * self.mhz),
            link=max(octets) / self.circuit.per_word / self.link.octets_per_s,
            host=host,
            start=self.link.round_trip_us / 1e6,
        )


def modelled_devices() -> tuple[ModelledDevice, ...]:
    """Return the devices that estimates are made for.

    ``make reference`` writes the file from the presets, their routing reports and a table of links.
    """
    text = files("host.protocol").joinpath("devices.json").read_text("utf-8")
    listed: list[dict[str, Any]] = json.loads(text)
    return tuple(
        ModelledDevice(
            **(one | {"circuit": Circuit(**one["circuit"]), "link": Link(**one["link"])})
        )
        for one in listed
    )
