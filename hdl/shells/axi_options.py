# SPDX-License-Identifier: Apache-2.0
"""Options of the AXI shell, which change its pins but not the accelerator."""

from dataclasses import asdict, dataclass

from hdl.families.choice import family_of

from .pin_names import PIN_NAMES

__all__ = ["BUS_CLOCKS", "AxiOptions"]

#: The registers have the clock of the streams, or one of their own.
BUS_CLOCKS = ("shared", "separate")


@dataclass(frozen=True, kw_only=True)
class AxiOptions:
    """What an AXI shell looks like from outside.

    Parameters
    ----------
    inputs : int
        1: one input ``s_axis`` for all words. More, up to 64, are merged by timestamp. Of a join,
        2 are ``s_axis_r`` and ``s_axis_s`` for R and S, and more are several sources of a side,
        ``s_axis_r0`` and so on. Of an aggregate, they are ``s_axis_in0`` and so on.
    r_inputs : int or None
        So many of the inputs of a join bring R's tuples. None: half of them, rounded down.
    bus_clock : str
        One of :data:`BUS_CLOCKS`.
    names : str
        One of :data:`hdl.shells.pin_names.PIN_NAMES`.
    """

    inputs: int = 1
    r_inputs: int | None = None
    bus_clock: str = "shared"
    names: str = "axi"

    def __post_init__(self):
        if self.bus_clock not in BUS_CLOCKS:
            raise ValueError(
                f"Clock of the registers must be {' or '.join(BUS_CLOCKS)}, not {self.bus_clock!r}"
            )
        if self.names not in PIN_NAMES:
            raise ValueError(
                f"Names of the pins must be {' or '.join(PIN_NAMES)}, not {self.names!r}"
            )

    @property
    def pins(self):
        """Return the :class:`hdl.shells.pin_names.PinNames`."""
        return PIN_NAMES[self.names]

    @property
    def has_bus_clock(self):
        """Return whether the registers have a clock of their own."""
        return self.bus_clock == "separate"

    def merged(self, parameters):
        """Return the names of the inputs that are merged; none if there is one input.

        Raises
        ------
        ValueError
            If the accelerator cannot have these inputs.
        """
        return family_of(parameters).inputs(self.inputs, self.r_inputs).names

    def check(self, parameters):
        """Raise :exc:`ValueError` unless the options suit an accelerator."""
        self.merged(parameters)

    def to_dict(self):
        """Return the options as they are in a manifest."""
        return asdict(self)

    @classmethod
    def from_manifest(cls, described):
        """Return the options of a shell that a manifest describes; of an older kit the defaults."""
        return cls(**described.get("options", {}))
