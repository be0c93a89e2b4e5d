# SPDX-License-Identifier: Apache-2.0
"""The digests of a band, as numbers in plain Python."""

from tests.hdl.input_words import criterion_ranges

__all__ = ["doubles_of", "key_digest_of", "part_widths", "probe_digest_of", "with_digests"]


def part_widths(digest_bits, fields):
    """How many bits the parts of a digest have: as equal as possible, wider ones first."""
    return [(digest_bits + fields - 1 - n) // fields for n in range(fields)]


def key_digest_of(widths, cells):
    """The digest that is stored of a key: the lowest bits of its cells, one below the other."""
    digest, offset = 0, 0
    for cell, width in zip(cells, widths, strict=True):
        digest |= cell % (1 << width) << offset
        offset += width
    return digest


def probe_digest_of(widths, cells):
    """The digest of a probe whose range begins in these cells: all grids, then all double cells."""
    digest = sum(cell % 2 << n for n, cell in enumerate(cells))
    offset = len(cells)
    for cell, width in zip(cells, widths, strict=True):
        digest |= (cell + 1) // 2 % (1 << width - 1) << offset
        offset += width - 1
    return digest


def doubles_of(widths, cells):
    """The double cells that a key lies in, in either grid."""
    doubles, offset = {"even": 0, "odd": 0}, 0
    for cell, width in zip(cells, widths, strict=True):
        doubles["even"] |= cell // 2 % (1 << width - 1) << offset
        doubles["odd"] |= (cell + 1) // 2 % (1 << width - 1) << offset
        offset += width - 1
    return doubles


def with_digests(parameters, settings, prepared):
    """A prepared tuple with its digests; ``settings`` are the field and the shift of each part."""
    keys = [prepared["key"][field.name] for field in parameters.keys]
    ranges = criterion_ranges(parameters, prepared["criterion"])
    widths = part_widths(parameters.engine.digest_bits, len(keys))
    stored, first, every = [], [], 0
    for field, shift in settings:
        low, high = ranges[field] if field < len(keys) else (0, 0)
        stored.append((keys[field] if field < len(keys) else 0) >> shift)
        first.append(low >> shift)
        every |= (high >> shift) - (low >> shift) > 1
    return {
        **prepared,
        "key": {**prepared["key"], "digest": key_digest_of(widths, stored)},
        "criterion": {
            **prepared["criterion"], "digest": probe_digest_of(widths, first), "every": every,
        },
    }  # fmt: skip
