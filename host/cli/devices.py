# SPDX-License-Identifier: Apache-2.0
"""`python -m host devices`: the kinds of devices, and the bundles on this machine."""

import argparse
from pathlib import Path

from host.devices.bundles import bundle_folders, find_bundles
from host.devices.simulated import LIBRARY, read_library
from host.errors import ManifestError
from host.installation import CommandParser
from host.protocol.manifest import Manifest

__all__ = [
    "KINDS",
    "add_parser",
    "main",
]

#: Kinds of devices, by the form of their URIs.
KINDS = {
    "sim:BUNDLE": "the bundle's accelerator, simulated cycle by cycle",
    "software:": "the software engine; always there, windows of any size",
    "software:BUNDLE": "a model of the bundle's accelerator, with its results",
    "serial:PATH?baud=N&bundle=BUNDLE": "a board at a serial port, with the bundle's bitstream",
    "tcp:HOST:PORT?bundle=BUNDLE": "a board behind a TCP server, likewise",
    "udp:HOST:PORT?bundle=BUNDLE": "a board with Ethernet, likewise",
    "axi:CARD?bundle=BUNDLE": "a card behind the driver XDMA, such as axi:/dev/xdma0",
    "pynq:FILE.bit?bundle=BUNDLE": "a PYNQ overlay with an AXI DMA",
    "xrt:FILE.xclbin?bundle=BUNDLE": "a kernel of Vitis on a card, over XRT",
    "PACKAGE.MODULE:PLACE": "what open_device(PLACE) of that module returns",
}


def add_parser(subparsers: "argparse._SubParsersAction[CommandParser]") -> None:
    """Add the subcommand ``devices`` to the command line of ``python -m host``."""
    parser = subparsers.add_parser(
        "devices",
        help="list the kinds of devices and the bundles found",
        description=__doc__,
        example="",
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Print the kinds of devices and the bundles on this machine."""
    del options
    print("Kinds of devices:")
    for form, meaning in KINDS.items():
        print(f"  {form:33} {meaning}")
    for place in bundle_folders():
        bundles = find_bundles(place)
        print(f"\nBundles in {place}:" if bundles else f"\nNo bundles in {place}.")
        for folder, manifest in bundles:
            print(f"  sim:{folder}{_lack(folder)}\n    {describe(manifest)}")
    return 0


def _lack(folder: Path) -> str:
    """Return why a bundle cannot be simulated as it is; empty if it can."""
    if not (folder / LIBRARY).exists():
        return " (no simulator library yet)"
    try:
        read_library(folder)
    except ManifestError as error:
        return f" (it {error.reason})"
    return ""


def describe(manifest: Manifest) -> str:
    """Return one line about an accelerator."""
    storage = manifest.storage
    keys = ", ".join(
        f"{key.name} {'int' if key.signed else 'uint'}{key.bits}" for key in manifest.keys
    )
    time = f", timestamps of {manifest.timestamp_bits} bits" if manifest.timestamp_bits else ""
    return (
        f"{storage.cores} cores, {manifest.capacity} tuples a side, keys {keys}{time}, "
        f"kit {manifest.kit}"
    )
