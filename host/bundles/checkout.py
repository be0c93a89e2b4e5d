# SPDX-License-Identifier: Apache-2.0
"""Find the checkout that the kit runs from, if there is one."""

from pathlib import Path

__all__ = ["find_checkout"]


def find_checkout() -> Path | None:
    """Return the root of the checkout with this file; None if the kit was installed by pip."""
    root = Path(__file__).resolve().parents[2]
    parts = ("pyproject.toml", "hdl", "sim")  # an installed kit's folder lacks the first
    return root if all((root / part).exists() for part in parts) else None
