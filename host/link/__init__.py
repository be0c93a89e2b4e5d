# SPDX-License-Identifier: Apache-2.0
"""The link to an accelerator on a board: frames over any byte stream (`docs/link.md`)."""

from host.link.board import BoardEndpoint
from host.link.endpoint import Endpoint, LinkCounters, Timing
from host.link.frames import Frame, FrameDecoder, Kind, encode_frame
from host.link.greeting import Greeting
from host.link.host_endpoint import HostEndpoint

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
