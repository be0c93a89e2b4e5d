# SPDX-License-Identifier: Apache-2.0
"""Windows as the words of a query that ask for them."""

from host.reference.window import CountWindow, TimeWindow

__all__ = ["over"]


def over(window):
    """Return the arguments of a query that has this window: ``rows`` or ``within``."""
    if isinstance(window, CountWindow):
        return {"rows": window.size}
    return {"within": window.lifespan if isinstance(window, TimeWindow) else window}
