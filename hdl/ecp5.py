# SPDX-License-Identifier: Apache-2.0
"""Detects an ECP5, whose primitives some components use directly."""

__all__ = ["is_ecp5"]


def is_ecp5(platform):
    """Return whether ``platform`` is an ECP5.

    A platform is any object with the name of a ``device``.
    """
    return str(getattr(platform, "device", "")).upper().startswith("LFE5U")
