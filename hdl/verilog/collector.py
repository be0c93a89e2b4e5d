# SPDX-License-Identifier: Apache-2.0
"""Python's cyclic garbage collector, off while a netlist is worked on."""

from contextlib import contextmanager
import gc

__all__ = ["without_collector"]


@contextmanager
def without_collector():
    """Keep Python's cyclic collector off.

    It looks at all objects of a netlist again and again, and takes half of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
