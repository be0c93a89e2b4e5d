# SPDX-License-Identifier: Apache-2.0
"""The joins that SplitJoin is compared with: chains of cores through which tuples flow.

They are the handshake join of Teubner and Mueller and the low-latency handshake join of Roy,
Teubner and Gemulla, as circuits behind the ports of SplitJoin (``docs/decisions``).
"""

from .arrangement import HANDSHAKE, LOW_LATENCY, Handshake, handshake, low_latency_handshake

__all__ = ["HANDSHAKE", "LOW_LATENCY", "Handshake", "handshake", "low_latency_handshake"]
