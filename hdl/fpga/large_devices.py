# SPDX-License-Identifier: Apache-2.0
"""Large devices of AMD, for which an accelerator can be estimated but not routed here."""

from dataclasses import dataclass

__all__ = ["LARGE_DEVICES", "LargeDevice"]


@dataclass(frozen=True, kw_only=True)
class LargeDevice:
    """What a device has, by its data sheet.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Card and device.
    luts, registers : int
        LUTs of six inputs, and registers.
    block_rams : int
        Block RAMs of 18 kbit: two for each of 36 kbit.
    multipliers : int
        DSP slices.
    """

    name: str
    title: str
    luts: int
    registers: int
    block_rams: int
    multipliers: int


LARGE_DEVICES = {
    device.name: device
    for device in [
        LargeDevice(
            name="u280", title="Alveo U280 (XCU280)", luts=1_303_680, registers=2_607_360,
            block_rams=2 * 2_016, multipliers=9_024,
        ),
        LargeDevice(
            name="u55c", title="Alveo U55C (XCU55C)", luts=1_303_680, registers=2_607_360,
            block_rams=2 * 2_016, multipliers=9_024,
        ),
        LargeDevice(
            name="vc1902", title="Versal AI Core VC1902 (VCK190, VCK5000)", luts=899_840,
            registers=1_799_680, block_rams=2 * 967, multipliers=1_968,
        ),
    ]
}  # fmt: skip
