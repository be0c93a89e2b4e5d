# SPDX-License-Identifier: Apache-2.0
"""The registers of a shell that the host uses, by their addresses.

The manifest does not list them, because every shell has the same ones (`docs/axi.md`).
"""

__all__ = [
    "CONTROL",
    "COUNTERS",
    "ENABLE_MARK",
    "ENABLE_ERROR",
    "ID",
    "INTERRUPT_ENABLE",
    "MAGIC",
    "MAJOR",
    "MANIFEST_HASH",
    "SNAPSHOT",
    "VERSION",
]

#: Register that identifies the map, and its value: the letters "SJKT", the first one lowest.
ID, MAGIC = 0x000, int.from_bytes(b"SJKT", "little")
#: Register with the version of the map: minor in the lower half, major in the upper half. The host
#: knows maps with this major version; minor versions only add registers.
VERSION, MAJOR = 0x004, 1
#: First of eight registers with the manifest's hash, its first byte in the lowest byte.
MANIFEST_HASH = 0x020
#: Register with commands, and the one that copies all counters.
CONTROL, SNAPSHOT = 0x040, 1 << 1
#: Register that can be written and read without any effect on words, and its bits.
INTERRUPT_ENABLE, ENABLE_MARK, ENABLE_ERROR = 0x04C, 1 << 0, 1 << 1
#: Register with the lower half of counter 0; every counter has eight bytes.
COUNTERS = 0x100
