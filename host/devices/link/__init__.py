# SPDX-License-Identifier: Apache-2.0
"""The link to an accelerator on a board: frames over any byte stream (`docs/link.md`)."""

from host.devices.link.endpoint import Endpoint, LinkCounters, Timing
from host.devices.link.ends import BoardEndpoint, HostEndpoint
from host.devices.link.frames import Frame, FrameDecoder, Greeting, Kind, encode_frame

__all__ = [
    "BoardEndpoint",
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
