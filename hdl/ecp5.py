# SPDX-License-Identifier: Apache-2.0
"""Is the accelerator built for an ECP5, whose primitives some components know how to use?"""

__all__ = ["is_ecp5"]


def is_ecp5(platform):
    """Is this platform (any object with the name of a ``device``) an ECP5?"""
    return str(getattr(platform, "device", "")).upper().startswith("LFE5U")
