# SPDX-License-Identifier: Apache-2.0
"""Counting the instructions of this thread and of those that it starts, where one may."""

import ctypes
import os
import platform
import struct

__all__ = ["Instructions"]

#: The number of ``perf_event_open``, by machine.
CALLS = {"x86_64": 298, "aarch64": 241}
#: PERF_TYPE_HARDWARE and PERF_COUNT_HW_INSTRUCTIONS.
INSTRUCTIONS = (0, 1)
#: With threads that begin inside, without the kernel and a hypervisor: inherit, exclude_kernel,
#: exclude_hv.
FLAGS = 1 << 1 | 1 << 5 | 1 << 6
#: Size of the first version of ``struct perf_event_attr``, all of whose fields are used here.
SIZE = 64


class Instructions:
    """Context manager: counts what this thread executes inside; containers often forbid it.

    Threads that it starts inside count too.

    Parameters
    ----------
    event : tuple of int
        Type and number of the event that is counted.

    Attributes
    ----------
    count : int or None
        Instructions, once the context is left; None where they cannot be counted.
    """

    def __init__(self, event=INSTRUCTIONS):
        self.event = event
        self.count = None
        self._file = None

    def __enter__(self):
        number = CALLS.get(platform.machine())
        if number is not None and platform.system() == "Linux":
            kind, config = self.event
            attributes = struct.pack("=IIQQQQQIIQ", kind, SIZE, config, 0, 0, 0, FLAGS, 0, 0, 0)
            library = ctypes.CDLL(None, use_errno=True)
            handle = library.syscall(number, attributes, 0, -1, -1, 0)
            self._file = handle if handle >= 0 else None
        return self

    def __exit__(self, *error):
        if self._file is not None:
            (self.count,) = struct.unpack("=Q", os.read(self._file, 8))
            os.close(self._file)
            self._file = None
