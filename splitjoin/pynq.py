# SPDX-License-Identifier: Apache-2.0
"""An accelerator in a PYNQ overlay, as a device of the kit (``docs/guide-dma.md``).

The package pynq is not imported here: its overlay and its function ``allocate`` are given.

Examples
--------
>>> import pynq
>>> from splitjoin import join
>>> from splitjoin.pynq import open_overlay
>>> with open_overlay(pynq.Overlay("trades.bit"), "build/dma") as device:
...     pairs = join("trades.parquet", "quotes.parquet", time="t", within=500, device=device)
"""

from host.devices.bus import open_overlay

__all__ = ["open_overlay"]
