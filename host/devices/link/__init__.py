# SPDX-License-Identifier: Apache-2.0
"""The link to an accelerator on a board: frames over any byte stream (`docs/link.md`)."""

from host.devices.link.endpoint import Endpoint, HostEndpoint, LinkCounters, Timing
from host.devices.link.frames import Frame, FrameDecoder, Greeting, Kind, encode_frame

__all__ = [
    "Endpoint",
    "Frame",
    "FrameDecoder",
    "Greeting",
    "HostEndpoint",
    "Kind",
    "LinkCounters",
    "Timing",
    "encode_frame",
]
