# SPDX-License-Identifier: Apache-2.0
"""Suspension of Python's cyclic garbage collector while a netlist is processed."""

from contextlib import contextmanager
import gc

__all__ = ["without_collector"]


@contextmanager
def without_collector():
    """Switch Python's cyclic garbage collector off for the duration of the block.

    The collector would visit all objects of a netlist again and again, and take half of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
