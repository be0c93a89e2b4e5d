# SPDX-License-Identifier: Apache-2.0
"""Programs that look after the checkout. They need only what comes with Python."""

__all__: list[str] = []
