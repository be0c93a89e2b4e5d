# SPDX-License-Identifier: Apache-2.0
"""Rows of a partition as its task gets them: tagged, sorted, in batches of any lengths."""

import pyarrow as pa

__all__ = ["in_batches", "tagged_table"]


def tagged_table(rows, *, part=None):
    """Return a table of ``(side, order, row, x)``, whose payload both sides share.

    Parameters
    ----------
    rows : list of (int, int or None, int, int, bool)
        Side, order, number, payload, and whether it is a halo row.
    part : int, optional
        The range of time that the rows were sent to; without it there are no halo rows.
    """
    side, order, row, x, halo = zip(*rows, strict=True) if rows else ((),) * 5
    columns = {
        "side": pa.array(side, pa.int8()),
        "order": pa.array(order, pa.int64()),
        "row": pa.array(row, pa.int64()),
        "c0": pa.array(order, pa.int64()),
        "c1": pa.array(x, pa.int32()),
    }
    if part is not None:
        columns["part"] = pa.array([part] * len(rows), pa.int32())
        columns["halo"] = pa.array(halo, pa.bool_())
    return pa.table(columns)


def in_batches(table, cuts):
    """Yield the rows of a table in batches that end at ``cuts``, some of them empty."""
    places = sorted(min(cut, table.num_rows) for cut in cuts)
    empty = pa.RecordBatch.from_pylist([], table.schema)
    for begin, end in zip([0, *places], [*places, table.num_rows], strict=True):
        yield from table.slice(begin, end - begin).combine_chunks().to_batches() or [empty]
