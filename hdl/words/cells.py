# SPDX-License-Identifier: Apache-2.0
"""Layouts of a band digest: cells of key fields, and the double cells that are compared."""

from amaranth import *
from amaranth.lib import data

__all__ = [
    "cell_layout", "digest_parts", "double_cells", "double_cells_layout", "has_cells",
    "probe_digest",
]  # fmt: skip


def has_cells(parameters):
    """Return whether the digests of an accelerator are made of cells: those of a band are."""
    return parameters.comparator == "band" and parameters.digest_bits is not None


def digest_parts(parameters):
    """Return the width of each part of a band digest.

    There are as many parts as key fields, as equally wide as possible. A part holds the lowest bits
    of a cell number. Control words say of which field, and how wide its cells are
    (:func:`cell_layout`).
    """
    count = len(parameters.keys)
    least, wider = divmod(parameters.digest_bits, count)
    return [least + (n < wider) for n in range(count)]


def cell_layout(parameters):
    """Return the layout of the value of CELL: what a part of the digest is made of.

    The cell number is the value of key field ``field``, without sign, shifted right by ``shift``.
    A field that does not exist has the value zero.
    """
    most = max(key.bits for key in parameters.keys)
    return data.StructLayout({"shift": range(most + 1), "field": range(len(parameters.keys))})


def double_cells_layout(widths):
    """Return the layout of the double cells that the parts of a stored digest lie in.

    Two neighbouring cells form a double cell, in the even grid those that begin with an even cell,
    in the odd grid all others. ``even`` and ``odd`` hold the lowest bits of the numbers of the
    double cells, one below the other for all parts.
    """
    bits = sum(widths) - len(widths)
    return data.StructLayout({"even": bits, "odd": bits})


def double_cells(cell):
    """Return the numbers of the double cells that a cell lies in, in the even and the odd grid.

    Both numbers have a bit less than the cell number, and wrap around with it.
    """
    return cell[1:], (cell + 1)[1 : len(cell)]


def probe_digest(first_cells):
    """Return the digest of a probe whose range begins in these cells, one for each part.

    The probe takes the grid in which its first cell begins a double cell: the even grid for an even
    cell, the odd one for an odd cell. From the lowest bit up, the digest holds the grid of each
    part, and then the numbers of the double cells, one below the other.
    """
    grids, doubles = [], []
    for cell in first_cells:
        even, odd = double_cells(cell)
        grids.append(cell[0])
        doubles.append(Mux(cell[0], odd, even))
    return Cat(*grids, *doubles)
