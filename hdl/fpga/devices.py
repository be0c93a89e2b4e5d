# SPDX-License-Identifier: Apache-2.0
"""Devices that accelerators are routed for, and those that are only estimated."""

from dataclasses import dataclass

__all__ = ["DEVICES", "LARGE_DEVICES", "SPEEDS", "Device", "LargeDevice", "find_device", "ram_site"]


#: Speed grades of the ECP5, from slow to fast.
SPEEDS = (6, 7, 8)


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device of the ECP5 family.

    Parameters
    ----------
    name : str
        Vendor's part name, in lower case.
    flag : str
        Option of nextpnr that selects the device.
    package : str
        Package with enough pads for the routing shell; it does not influence the clock.
    logic_cells : int
        Number of four-input LUTs; there are as many registers.
    block_rams : int
        Number of block RAMs of 18 kbit.
    ram_columns : tuple of (int, int)
        Positions of the block RAMs in a row: column of the tile, and index of the site in its
        group. Empty for a device without a floorplan.
    ram_rows : tuple of int
        Rows that hold block RAMs.
    multiplier_columns, multiplier_rows : tuple
        The same for the multipliers of 18 by 18 bits.
    """

    name: str
    flag: str
    package: str
    logic_cells: int
    block_rams: int
    ram_columns: tuple[tuple[int, int], ...] = ()
    ram_rows: tuple[int, ...] = ()
    multiplier_columns: tuple[tuple[int, int], ...] = ()
    multiplier_rows: tuple[int, ...] = ()

    @property
    def device(self):
        """Device name as in Amaranth's platforms, so that this object can stand in for one."""
        return self.name.upper()


def ram_site(column, row):
    """Return nextpnr's name of a block RAM site, given one of the columns and one of the rows."""
    place, kind = column
    return f"X{place}/Y{row}/EBR{kind}"


#: Columns of the LFE5U-85F in which a group of four sites begins, in rows of block RAMs or of
#: multipliers.
GROUPS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)

DEVICES = {
    device.name: device
    for device in [
        Device(
            name="lfe5u-25f", flag="--25k", package="CABGA256", logic_cells=24288, block_rams=56
        ),
        Device(
            name="lfe5u-45f", flag="--45k", package="CABGA381", logic_cells=43848, block_rams=108
        ),
        Device(
            name="lfe5u-85f", flag="--85k", package="CABGA381", logic_cells=83640, block_rams=208,
            ram_columns=tuple((first + 2 * kind, kind) for first in GROUPS for kind in range(4)),
            ram_rows=(22, 46, 70, 82),
            multiplier_columns=tuple(
                (first + kind, kind) for first in GROUPS for kind in (0, 1, 4, 5)
            ),
            multiplier_rows=(10, 34, 58),
        ),
    ]
}  # fmt: skip


def find_device(name):
    """Return the device called ``name``, in upper or lower case.

    Raises
    ------
    ValueError
        If there is no such device.
    """
    try:
        return DEVICES[name.lower()]
    except KeyError:
        known = ", ".join(DEVICES)
        raise ValueError(f"Device must be one of {known}, not {name!r}") from None


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
