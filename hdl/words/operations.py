# SPDX-License-Identifier: Apache-2.0
"""Effects of control words on a region."""

from .cells import has_cells
from .inputs import Control

__all__ = ["ANSWERED", "answers_mark", "begins_window", "empties_own_window", "empties_window"]

#: Operations that an accelerator answers with a mark, if it executes them.
ANSWERED = (Control.CLEAR, Control.FLUSH, Control.PRECISION, Control.INNER)


def answers_mark(control):
    """Return whether the accelerator answers a control word with a mark."""
    return control.op.as_value().matches(*ANSWERED)


def begins_window(control):
    """Return whether a control word begins a new window for a side."""
    return control.op.as_value().matches(Control.WINDOW, Control.LIFESPAN)


def empties_window(control, parameters):
    """Return whether a control word empties a window, and so waits until the engine is idle."""
    own = (Control.COORDINATE, Control.DISTINCT) if parameters.engine == "index" else ()
    if has_cells(parameters):
        own = (Control.CELL,)
    operation = control.op.as_value()
    return begins_window(control) | operation.matches(Control.CLEAR, *own)


def empties_own_window(control):
    """Return whether a control word that empties a window empties the one that a region stores.

    Parameters
    ----------
    control : View
        The word as the region gets it, in which the side that it stores is side 1.
    """
    return ~begins_window(control) | (control.index == 1)
