# SPDX-License-Identifier: Apache-2.0
"""The devices that open tools can route, with what they offer."""

from dataclasses import dataclass

__all__ = ["DEVICES", "SPEEDS", "Device", "find_device", "ram_site"]

#: Speed grades of the ECP5, slow to fast.
SPEEDS = (6, 7, 8)


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device of the ECP5 family.

    Parameters
    ----------
    name : str
        As the vendor orders it, in lower case.
    flag : str
        How nextpnr is told.
    package : str
        A package with enough pads for the routing shell; it has no influence on the clock.
    logic_cells : int
        LUT4, and as many registers.
    block_rams : int
        Block RAMs of 18 kbit.
    ram_columns : tuple of (int, int)
        Where they are in a row: column of the tile, and which of its kind the site is; empty if
        no floorplan was made for the device.
    ram_rows : tuple of int
        Rows that hold them.
    multiplier_columns, multiplier_rows : tuple
        The same of the multipliers of 18 by 18 bits.
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
        """Name of the device as platforms of Amaranth say it, so that this can stand for one."""
        return self.name.upper()


def ram_site(column, row):
    """Return what nextpnr calls the site of a block RAM, by one of the columns and of the rows."""
    place, kind = column
    return f"X{place}/Y{row}/EBR{kind}"


#: Where groups of four sites begin in a row of block RAMs or of multipliers of the LFE5U-85F.
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
    """Return the device called ``name``, in any case.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return DEVICES[name.lower()]
    except KeyError:
        known = ", ".join(DEVICES)
        raise ValueError(f"Device must be one of {known}, not {name!r}") from None
