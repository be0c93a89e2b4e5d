# SPDX-License-Identifier: Apache-2.0
"""A core of the handshake join."""

__all__ = ["HandshakeCore"]


class HandshakeCore:
    pass
